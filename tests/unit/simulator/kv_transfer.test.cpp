#include <boost/json/parse.hpp>
#include <boost/json/serialize.hpp>
#include <doctest/doctest.h>

#include "actors/simulator/kv_lease_book.hpp"
#include "actors/simulator/kv_link.hpp"
#include "actors/simulator/kv_transfer_params.hpp"

using namespace infernex;
using namespace infernex::simulator;
using namespace std::chrono_literals;

namespace json = boost::json;

namespace {

using part = kv_transfer_request::part;

kv_transfer_settings speaking(transfer_protocol protocol, transfer_role role = transfer_role::both) {
  kv_transfer_settings values;
  values.protocol = protocol;
  values.role = role;
  return values;
}

kv_transfer_request read(std::string_view body, const kv_transfer_settings& of) {
  const auto outcome = parse_transfer(json::parse({body.data(), body.size()}).as_object(), of);
  REQUIRE(std::holds_alternative<kv_transfer_request>(outcome));
  return std::get<kv_transfer_request>(outcome);
}

std::string refused(std::string_view body, const kv_transfer_settings& of) {
  const auto outcome = parse_transfer(json::parse({body.data(), body.size()}).as_object(), of);
  REQUIRE(std::holds_alternative<refusal>(outcome));
  return std::get<refusal>(outcome).param;
}

const kv_place here{"engine-1", "10.0.0.1", 5600};

}  // namespace

TEST_CASE("what a prefill engine offers is what a decode engine of the same protocol reads") {
  const kv_offer offer{"chatcmpl-r", {7, 9}, 16, 35, 65};
  for (const auto protocol : {transfer_protocol::nixl, transfer_protocol::ascend}) {
    const auto params = offered_params(protocol, here, offer);
    const auto taken = read(json::serialize(json::object{{"kv_transfer_params", params}}), speaking(protocol));
    CHECK(taken.what == part::take);
    CHECK(taken.key == "chatcmpl-r");
    CHECK(taken.engine_id == "engine-1");
    CHECK(taken.host == "10.0.0.1");
    CHECK(taken.port == 5600);
    CHECK(taken.blocks == std::vector<std::uint32_t>{7, 9});
  }
  const auto nixl = offered_params(transfer_protocol::nixl, here, offer).as_object();
  CHECK(nixl.at("remote_num_tokens") == 32);
  CHECK(nixl.at("tp_size") == 1);
  const auto ascend = offered_params(transfer_protocol::ascend, here, offer).as_object();
  CHECK(ascend.at("num_prompt_blocks") == 3);
  CHECK(ascend.at("remote_block_size") == 16);
  CHECK(ascend.at("last_token_id") == 65);
  CHECK(ascend.at("remote_multi_nodes_meta_mapping").is_object());
}

TEST_CASE("nothing is offered for a prompt without a whole block, nor where the protocol offers nothing") {
  CHECK(offered_params(transfer_protocol::nixl, here, {"r", {}, 16, 9, 0}).is_null());
  CHECK(offered_params(transfer_protocol::mooncake, here, {"r", {1}, 16, 20, 0}).is_null());
}

TEST_CASE("a prefill is asked for as each protocol's proxies ask") {
  const auto plain = read(R"({"kv_transfer_params":{"do_remote_decode":true,"do_remote_prefill":false,
      "remote_engine_id":null,"remote_block_ids":null,"remote_host":null,"remote_port":null}})",
                          speaking(transfer_protocol::nixl));
  CHECK(plain.what == part::give);
  CHECK_FALSE(plain.awaited);
  const auto matched = read(R"({"kv_transfer_params":{"do_remote_decode":true,"transfer_id":"xfer-1"}})",
                            speaking(transfer_protocol::mooncake));
  CHECK(matched.what == part::give);
  CHECK(matched.key == "xfer-1");
  CHECK(matched.awaited);
  const auto from = metaserver_request(here, "chatcmpl-x", std::vector<std::uint32_t>{3, 4}, 16, 16);
  const auto pushed = read("{\"kv_transfer_params\":" + from + "}", speaking(transfer_protocol::ascend_layerwise));
  CHECK(pushed.what == part::give);
  CHECK(pushed.key == "chatcmpl-x");
  CHECK(pushed.host == "10.0.0.1");
  CHECK(pushed.cached_tokens == 16);
}

TEST_CASE("a room says nothing of the half that is wanted: the engine's role does") {
  const std::string_view body = R"({"bootstrap_host":"p","bootstrap_port":8998,"bootstrap_room":9223372036854775807})";
  const auto gives = read(body, speaking(transfer_protocol::sglang, transfer_role::prefill));
  CHECK(gives.what == part::give);
  CHECK(gives.key == "9223372036854775807");
  const auto takes = read(body, speaking(transfer_protocol::sglang, transfer_role::decode));
  CHECK(takes.what == part::take);
  CHECK(takes.host == "p");
  CHECK(takes.port == 8998);
  CHECK(refused(R"({"bootstrap_room":1})", speaking(transfer_protocol::sglang, transfer_role::decode)) ==
        "bootstrap_host");
}

TEST_CASE("parameters of another role or connector are left alone; wrong ones are refused, incomplete ones ignored") {
  const std::string_view take = R"({"kv_transfer_params":{"do_remote_prefill":true,"remote_engine_id":"e",
      "remote_request_id":"r","remote_host":"h","remote_port":1,"remote_block_ids":[[1],[2]]}})";
  CHECK(read(take, speaking(transfer_protocol::nixl)).blocks.size() == 2);
  CHECK(read(take, speaking(transfer_protocol::none)).what == part::none);
  CHECK(read(take, speaking(transfer_protocol::nixl, transfer_role::prefill)).what == part::none);
  CHECK(read(R"({"kv_transfer_params":null})", speaking(transfer_protocol::nixl)).what == part::none);
  CHECK(read(R"({"kv_transfer_params":{"do_remote_prefill":true}})", speaking(transfer_protocol::nixl)).what ==
        part::none);
  CHECK(refused(R"({"kv_transfer_params":7})", speaking(transfer_protocol::nixl)) == "kv_transfer_params");
  CHECK(refused(R"({"kv_transfer_params":{"do_remote_prefill":true,"remote_block_ids":["a"]}})",
                speaking(transfer_protocol::nixl)) == "remote_block_ids");
  CHECK(refused(R"({"kv_transfer_params":{"do_remote_prefill":true,"transfer_id":"x","remote_bootstrap_addr":"p"}})",
                speaking(transfer_protocol::mooncake)) == "remote_bootstrap_addr");
}

TEST_CASE("several prompts: layer-wise has a transfer for each, by the number in the name; the others have none") {
  const auto layerwise = speaking(transfer_protocol::ascend_layerwise);
  const auto all = [](const std::string& params, const kv_transfer_settings& of) {
    return parse_transfers(json::parse("{\"kv_transfer_params\":" + params + "}").as_object(), of, 2);
  };
  const auto child = [](const std::string& name) {
    return metaserver_request(here, name, std::vector<std::uint32_t>{3}, 16, 0);
  };
  const auto batch = [&](const std::string& children) {
    return child("cmpl-x-0").insert(1, "\"batch_kv_transfer_params\":" + children + ",");
  };
  const auto given =
      all(batch("{\"cmpl-x-1\":" + child("cmpl-x-1") + ",\"cmpl-x-0\":" + child("cmpl-x-0") + "}"), layerwise);
  const auto& each = std::get<std::vector<kv_transfer_request>>(given);
  REQUIRE(each.size() == 2);
  CHECK(each[0].key == "cmpl-x-0");
  CHECK(each[1].key == "cmpl-x-1");
  CHECK(each[1].what == part::give);
  for (const auto* wrong : {"7", "{}", "{\"cmpl-x-0\":{}}"})
    CHECK(std::holds_alternative<refusal>(all(batch(wrong), layerwise)));
  const auto taken = all(R"({"do_remote_prefill":true,"metaserver":"http://m"})", layerwise);
  CHECK(std::get<std::vector<kv_transfer_request>>(taken).size() == 2);
  const auto none = all(R"({"do_remote_decode":true})", speaking(transfer_protocol::nixl));
  CHECK(std::get<std::vector<kv_transfer_request>>(none).empty());
}

TEST_CASE("several prompts: SGLang has a room for each") {
  const auto takes = speaking(transfer_protocol::sglang, transfer_role::decode);
  const auto read_all = [&](std::string_view body) {
    return parse_transfers(json::parse({body.data(), body.size()}).as_object(), takes, 2);
  };
  const auto lists = read_all(R"({"bootstrap_host":["p","p"],"bootstrap_port":[8998,8999],"bootstrap_room":[5,6]})");
  const auto& each = std::get<std::vector<kv_transfer_request>>(lists);
  REQUIRE(each.size() == 2);
  CHECK(each[0].key == "5");
  CHECK(each[1].key == "6");
  CHECK(each[1].port == 8999);
  CHECK(std::get<std::vector<kv_transfer_request>>(read_all("{}")).empty());
  for (const auto* wrong : {R"({"bootstrap_host":"p","bootstrap_port":1,"bootstrap_room":5})",
                            R"({"bootstrap_host":["p","p"],"bootstrap_port":[1,2],"bootstrap_room":[5]})"})
    CHECK(std::holds_alternative<refusal>(read_all(wrong)));
}

TEST_CASE("a pull between engines is read as it was written") {
  const auto outcome = parse_pull(render(kv_pull{"key", "engine", {1, 2}, 3, 400}));
  REQUIRE(std::holds_alternative<kv_pull>(outcome));
  const auto& pull = std::get<kv_pull>(outcome);
  CHECK(pull.key == "key");
  CHECK(pull.engine_id == "engine");
  CHECK(pull.blocks == std::vector<std::uint32_t>{1, 2});
  CHECK(pull.wanted == 3);
  CHECK(pull.wait_ms == 400);
  CHECK(std::holds_alternative<refusal>(parse_pull("{}")));
}

TEST_CASE("a lease ends by time unless it is being read, and only once") {
  kv_lease_book book;
  const kv_lease_book::time_point start{};
  CHECK_FALSE(book.offer("a", {1, {10, 11}, start + 30s}));
  CHECK_FALSE(book.offer("b", {2, {12}, start + 20s}));
  CHECK(book.next_end() == start + 20s);
  CHECK(book.begin_read("b", {12}) == kv_lease_book::outcome::begun);
  CHECK(book.begin_read("b", {}) == kv_lease_book::outcome::busy);
  CHECK(book.next_end() == start + 30s);
  CHECK(book.expire(start + 29s).empty());
  const auto expired = book.expire(start + 30s);
  REQUIRE(expired.size() == 1);
  CHECK(expired[0].held == 1);
  CHECK_FALSE(book.end("a"));
  CHECK(book.end("b")->held == 2);
  CHECK_FALSE(book.next_end());
}

TEST_CASE("a read names blocks that are held, and a second offer gives the first one back") {
  kv_lease_book book;
  CHECK(book.begin_read("a", {}) == kv_lease_book::outcome::unknown);
  book.offer("a", {1, {10, 11}, {}});
  CHECK(book.begin_read("a", {10, 12}) == kv_lease_book::outcome::no_such_block);
  CHECK_FALSE(book.find("a")->reading);
  const auto replaced = book.offer("a", {2, {13}, {}});
  REQUIRE(replaced);
  CHECK(replaced->held == 1);
  CHECK(book.find("a")->held == 2);
}

TEST_CASE("transfers take their time, one after the other") {
  kv_transfer_settings values;
  values.bandwidth_gbps = 8;  // 1e9 bytes a second
  values.bytes_per_token = 10'000;
  values.latency = 2ms;
  kv_link link(values, 1);
  const kv_link::time_point start{1h};
  const auto is = [](kv_link::time_point got, kv_link::time_point expected) {
    return std::chrono::abs(got - expected) < 1us;
  };
  CHECK(is(link.send(start, 1'000), start + 12ms));
  CHECK(is(link.send(start, 1'000), start + 22ms));
  CHECK(is(link.send(start + 1s, 0), start + 1s + 2ms));
  kv_link fast(values, 10);
  CHECK(is(fast.send(start, 1'000), start + 1'200us));
}
