#include "actors/indexer/conductor.hpp"

#include <boost/json.hpp>
#include <doctest/doctest.h>

#include "tests/unit/indexer/reading.hpp"

namespace infernex::indexer {
namespace {

namespace json = boost::json;

std::string mistake(std::string_view body) { return mistake_in(body, read_registration); }
registration registered(std::string_view body) { return read_right(body, read_registration); }

TEST_CASE("a registration names what is to be followed") {
  const auto all =
      registered(R"({"endpoint":"tcp://10.0.0.5:5557","replay_endpoint":"tcp://10.0.0.5:5558","type":"vLLM",
    "modelname":"m","lora_name":"","tenant_id":"acme","instance_id":"vllm-1","block_size":16,"dp_rank":1,
    "additionalsalt":"w8a8"})");
  CHECK(all.engine.instance == "vllm-1-dp1");
  CHECK(all.engine.model == "m@tenant:acme");
  CHECK(all.engine.kv_events == "tcp://10.0.0.5:5557");
  CHECK(all.engine.kv_replay == "tcp://10.0.0.5:5558");
  CHECK(all.engine.url.empty());
  CHECK(all.engine.block_size == 16);
  CHECK(json::parse(render_registered(all)) ==
        json::parse(R"({"status":"registered successfully","instance_id":"vllm-1"})"));
  const auto least = registered(R"({"endpoint":"tcp://h:1","modelname":"m","instance_id":"a"})");
  CHECK(least.engine.instance == "a");
  CHECK(least.engine.model == "m");
  CHECK(least.names.tenant == "default");
  CHECK_FALSE(least.engine.block_size);
  // The engine knows a tenant's model by another name than requests for it would have.
  CHECK(least.engine.routable);
  CHECK_FALSE(all.engine.routable);
}

TEST_CASE("a wrong registration is refused with the caller's name of the field") {
  CHECK(mistake(R"({"modelname":"m","instance_id":"a"})") == "endpoint: is required");
  CHECK(mistake(R"({"endpoint":"tcp://h:1","instance_id":"a"})") == "modelname: is required");
  CHECK(mistake(R"({"endpoint":"tcp://h:1","modelname":"m"})") == "instance_id: is required");
  CHECK(mistake(R"({"endpoint":"tcp://*:1","modelname":"m","instance_id":"a"})").starts_with("endpoint: "));
  CHECK(mistake(R"({"endpoint":"ipc:///run/kv","modelname":"m","instance_id":"a"})").starts_with("endpoint: "));
  CHECK(mistake(R"({"endpoint":"tcp://h:1","replay_endpoint":"inproc://x","modelname":"m","instance_id":"a"})")
            .starts_with("replay_endpoint: "));
  CHECK(mistake(R"({"endpoint":"tcp://h:1","replay_endpoint":"h","modelname":"m","instance_id":"a"})")
            .starts_with("replay_endpoint: "));
  CHECK(
      mistake(R"({"endpoint":"tcp://h:1","type":"Mooncake","modelname":"m","instance_id":"a"})").starts_with("type: "));
  CHECK(mistake(R"({"endpoint":"tcp://h:1","modelname":"m","instance_id":"a","url":"h"})").starts_with("url: "));
  CHECK(mistake(R"({"endpoint":"tcp://h:1","modelname":"m","instance_id":"a","block_size":0})")
            .starts_with("block_size: "));
  CHECK(mistake(R"({"endpoint":"tcp://h:1","modelname":"m","instance_id":"a","dp_rank":-1})").starts_with("dp_rank: "));
  CHECK(mistake(R"({"endpoint":"tcp://h:1","modelname":"m@tenant:x","instance_id":"a"})").starts_with("modelname"));
}

TEST_CASE("what is left out of an unregistration stands for all") {
  const auto one =
      registered(R"({"endpoint":"tcp://h:1","modelname":"m","tenant_id":"acme","instance_id":"a","dp_rank":1})");
  const auto names = [&one](std::string_view body) { return read_right(body, read_unregistration).names(one); };
  CHECK(names(R"({"instance_id":"a"})"));
  CHECK(names(R"({"instance_id":"a","modelname":"m","tenant_id":"acme","dp_rank":1})"));
  CHECK_FALSE(names(R"({"instance_id":"b"})"));
  CHECK_FALSE(names(R"({"instance_id":"a","modelname":"m"})"));
  CHECK_FALSE(names(R"({"instance_id":"a","dp_rank":0})"));
  CHECK(json::parse(render_unregistered({&one, 1})) ==
        json::parse(R"({"status":"unregistered successfully","removed_instances":["a|acme|1"]})"));
}

TEST_CASE("ranks are part of an instance's name") {
  CHECK(split_rank("a-dp12").id == "a");
  CHECK(split_rank("a-dp12").rank == 12);
  for (const auto* plain : {"a", "-dp1", "a-dp", "a-dpx", "a-dp1x", "a-dp99999"}) {
    CHECK(split_rank(plain).id == plain);
    CHECK(split_rank(plain).rank == 0);
  }
}

TEST_CASE("a query's answer counts tokens by instance, rank and tier") {
  conductor_query query;
  REQUIRE_FALSE(
      read_query(R"({"model":"m","token_ids":[1,2],"block_size":16,"tenant_id":"acme"})", query_by::tokens, query));
  const std::vector<match_row> rows{
      {"a-dp0", 8, 4, 8}, {"a-dp1", 16, 8, 10}, {"b", 0, 0, 0}, {"c", 2, 2, 2}, {"d", 2, 1, 2}};
  CHECK(json::parse(render_query(query, rows)) == json::parse(R"({"acme":{
    "a":{"longest_matched":256,"GPU":128,"DP":{"0":128,"1":256},"CPU":160,"DISK":256},
    "b":{"longest_matched":0,"GPU":0,"DP":{"0":0},"CPU":0,"DISK":0},
    "c":{"longest_matched":32,"GPU":32,"DP":{"0":32},"CPU":0,"DISK":0},
    "d":{"longest_matched":32,"GPU":16,"DP":{"0":32},"CPU":32,"DISK":0}}})"));
  query.instance = "b";
  CHECK(json::parse(render_query(query, rows)).at("acme").as_object().size() == 1);
  query.instance = "a-dp1";
  CHECK(json::parse(render_query(query, rows)).at("acme").at("a").at("longest_matched").to_number<int>() == 256);
  query.instance = "nobody";
  query.question.tenant.clear();
  CHECK(json::parse(render_query(query, rows)) == json::parse(R"({"default":{}})"));
}

TEST_CASE("a query by hashes names our own block keys") {
  conductor_query query;
  REQUIRE_FALSE(read_query(R"({"model":"m","seq_hashes":[255,"00000000000000ff","0x1"],"block_size":16})",
                           query_by::hashes, query));
  CHECK(query.question.by == match_question::form::keys);
  CHECK(query.question.chains.lists == std::vector<std::vector<std::uint64_t>>{{255, 255, 1}});
  conductor_query wrong;
  CHECK(read_query(R"({"model":"m","token_ids":[1]})", query_by::hashes, wrong)->param == "seq_hashes");
  CHECK(read_query(R"({"model":"m","seq_hashes":[-1]})", query_by::hashes, wrong)->param == "seq_hashes");
}

TEST_CASE("a wrong query is refused") {
  const auto refused = [](std::string_view body) {
    conductor_query query;
    return read_query(body, query_by::tokens, query).has_value();
  };
  CHECK(refused(R"({"model":"m"})"));
  CHECK(refused(R"({"token_ids":[1]})"));
  CHECK(refused(R"({"model":"m","token_ids":[1],"block_size":"16"})"));
  CHECK(refused(R"({"model":"m","token_ids":[[1]]})"));
}

}  // namespace
}  // namespace infernex::indexer
