#include "actors/indexer/dump.hpp"

#include <set>

#include <boost/json.hpp>
#include <doctest/doctest.h>

#include "actors/indexer/kv_index.hpp"
#include "actors/indexer/kv_text.hpp"

namespace infernex::indexer {
namespace {

namespace json = boost::json;

TEST_CASE("the question of a dump is read from the target") {
  dump_question q;
  REQUIRE_FALSE(read_dump_question("/dump?model=Qwen%2FQwen3+x&tenant=acme&instance=e0&limit=5", q));
  CHECK(q.model == "Qwen/Qwen3 x");
  CHECK(q.index == "Qwen/Qwen3 x@tenant:acme");
  CHECK(q.instance == "e0");
  CHECK(q.limit == 5);
  const auto at_fault = [](std::string_view target) {
    dump_question into;
    const auto problem = read_dump_question(target, into);
    return problem ? problem->param : std::string("none");
  };
  CHECK(at_fault("/dump?model=m") == "none");
  CHECK(at_fault("/dump") == "model");
  CHECK(at_fault("/dump?model=%2") == "model");
  CHECK(at_fault("/dump?model=%zz") == "model");
  CHECK(at_fault("/dump?model=m&limit=0") == "limit");
  CHECK(at_fault("/dump?model=m&limit=1x") == "limit");
  CHECK(at_fault("/dump?model=m&what=1") == "what");
  CHECK(at_fault("/dump?model=m&&&") == "");
}

TEST_CASE("the pieces of a dump are one JSON text, cut at its limit") {
  dump_question q;
  REQUIRE_FALSE(read_dump_question("/dump?model=m&limit=3", q));
  dump_text text(q);
  auto all = text.head() + text.begin_instance("e0") + text.keys({1, 2}) + text.keys({}) + text.end_instance();
  CHECK_FALSE(text.cut());
  all += text.begin_instance("e\"1") + text.keys({3, 4}) + text.end_instance();
  CHECK(text.cut());
  CHECK(json::parse(all + text.tail()) == json::parse(R"({"model":"m","tenant":"default","instances":[
    {"instance":"e0","keys":["0000000000000001","0000000000000002"]},
    {"instance":"e\"1","keys":["0000000000000003"]}],"keys":3,"complete":false})"));
  q.limit = 9;
  dump_text whole(q);
  CHECK(json::parse(whole.head() + whole.tail()).at("complete") == true);
  q.limit = 2;
  dump_text exactly(q);
  all =
      exactly.head() + exactly.begin_instance("e0") + exactly.keys({1, 2}) + exactly.keys({}) + exactly.end_instance();
  CHECK(json::parse(all + exactly.tail()).at("complete") == true);
  CHECK(exactly.keys({3}).empty());
  CHECK(json::parse(all + exactly.tail()).at("complete") == false);
}

TEST_CASE("the parts of an index hold every key of an instance once, and no other's") {
  kv_index index({.max_instances = 100});
  std::set<block_key> expected;
  std::vector<block_key> many;
  for (block_key k = 0; k < 5'000; ++k) {
    many.push_back(k * 0x9E3779B97F4A7C15ULL);
    if (k % 3 != 0) expected.insert(many.back());
  }
  // Enough holders that some sets are no longer inline.
  for (int i = 0; i < 70; ++i) {
    REQUIRE(index.add_instance("other" + std::to_string(i)));
    index.add("other" + std::to_string(i), many);
  }
  REQUIRE(index.add_instance("e0"));
  index.add("e0", std::vector<block_key>(expected.begin(), expected.end()));
  std::vector<block_key> found;
  kv_index::reader reader(index);
  for (std::uint32_t part = 0; part < kv_index::key_parts; ++part)
    reader.each_key("e0", part, [&found](block_key k) { found.push_back(k); });
  CHECK(found.size() == expected.size());
  CHECK(std::set<block_key>(found.begin(), found.end()) == expected);
  index.clear("e0");
  reader.each_key("e0", 0, [](block_key) { FAIL("a cleared instance holds nothing"); });
  reader.each_key("unknown", 0, [](block_key) { FAIL("nobody"); });
}

TEST_CASE("sources are a table for people") {
  const auto text =
      top_text(R"({"models":[{"model":"m","distinct_keys":12,"bytes":2621440,"refused_keys":0,"instances":[
    {"instance":"e0","keys":12,"host_keys":3,"disk_keys":0,"exact":true,"sequence":3,"age_ms":40,"state":"exact","engine_state":"Ready"},
    {"instance":"e11","keys":0,"host_keys":0,"disk_keys":0,"exact":false,"sequence":0,"age_ms":9,"state":"syncing","engine_state":null}]}]})");
  REQUIRE(text);
  CHECK(*text ==
        "MODEL  INSTANCES  EXACT  BLOCKS  REFUSED   MEMORY\n"
        "m              2      1      12        0  2.5 MiB\n"
        "\n"
        "MODEL  INSTANCE  STATE    ENGINE  BLOCKS  HOST  DISK  SEQUENCE    AGE\n"
        "m      e0        exact    Ready       12     3     0         3  40 ms\n"
        "m      e11       syncing  -            0     0     0         0   9 ms\n");
  CHECK(*top_text(R"({"models":[]})") == "no engine is known\n");
  CHECK(top_text("{}").failure().code == errc::malformed_input);
  CHECK(top_text("oops").failure().code == errc::malformed_input);
}

TEST_CASE("an explanation says who holds how much, and why no more") {
  const auto text = explain_text(R"({"model":"m","tenant":"default","block_size":16,"prompt_tokens":40,"blocks":2,
    "tokens_by":"render","block_keys":["00aa","00bb"],"instances":[{"instance":"e0","matched_tokens":32,"hit_rate":0.8,
    "device_tokens":16,"host_tokens":16,"disk_tokens":0,"blocks":2,"exact":true,"why_no_more":"the rest"}]})");
  REQUIRE(text);
  CHECK(text->starts_with("model m, tenant default: 40 tokens (render), 2 blocks of 16 that a cache can serve\n"));
  CHECK(text->find("first block 00aa, last block 00bb\n") != std::string::npos);
  CHECK(text->find("the rest\n") != std::string::npos);
  CHECK(text->find(" 80% ") != std::string::npos);
  CHECK(explain_text("[]").failure().code == errc::malformed_input);
}

TEST_CASE("the only model need not be named") {
  CHECK(*only_model(R"({"models":[{"model":"m"}]})") == "m");
  CHECK(only_model(R"({"models":[]})").failure().code == errc::not_found);
  CHECK(only_model(R"({"models":[{"model":"a"},{"model":"b"}]})").failure().code == errc::invalid_request);
  CHECK(only_model("5").failure().code == errc::malformed_input);
}

}  // namespace
}  // namespace infernex::indexer
