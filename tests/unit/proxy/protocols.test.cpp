// What each protocol sends, byte by byte: the formats are the engines' connectors'.

#include <doctest/doctest.h>

#include "actors/proxy/protocol.hpp"

using namespace infernex;
using namespace infernex::proxy;

namespace {

attempt try_of(fb::KvProtocol, std::string body, api kind = api::completions) {
  attempt at;
  at.facts = *read_request(kind, body);
  at.body = std::move(body);
  at.pair = {engine_ref{"p-0", "http://10.0.0.1:8000", "10.0.0.1:8000", {}, 9001, {}},
             engine_ref{"d-0", "http://10.0.0.2:8000", "10.0.0.2:8000", {}, {}, {}}};
  at.id = "abc123";
  at.random = 0x7FFFFFFFFFFFFFFF;
  at.metaserver = "http://proxy:8100/v1/metaserver";
  return at;
}

const std::string plain = R"({"prompt":"p","max_tokens":5})";

}  // namespace

TEST_CASE("nixl: what prefill answered goes to decode as it came") {
  const auto at = try_of(fb::KvProtocol::Nixl, plain);
  const auto nixl = make_nixl();
  const auto first = nixl->begin(at);
  REQUIRE(first.prefill);
  CHECK_FALSE(first.decode);
  CHECK(
      first.prefill->body ==
      R"({"prompt":"p","max_tokens":1,"stream":false,"kv_transfer_params":{"do_remote_decode":true,)"
      R"("do_remote_prefill":false,"remote_engine_id":null,"remote_block_ids":null,"remote_host":null,"remote_port":null}})");
  CHECK_FALSE(nixl->release(at));
  const std::string params =
      R"({"do_remote_prefill":true,"remote_block_ids":[[1, 2],[3]],"remote_engine_id":"e","big":12345678901234567890123})";
  const auto then = nixl->on_prefill(at, R"({"id":"x","kv_transfer_params":)" + params + "}");
  REQUIRE(then.decode);
  CHECK(then.decode->body == R"({"prompt":"p","max_tokens":5,"kv_transfer_params":)" + params + "}");
  const auto let_go = nixl->release(at);
  REQUIRE(let_go);
  CHECK(let_go->body == R"({"prompt":"p","max_tokens":1,"stream":false,"kv_transfer_params":)" + params + "}");
}

TEST_CASE("nixl: a prompt of which prefill holds nothing goes to decode as it is") {
  for (const auto* answer : {R"({"kv_transfer_params":null})", R"({"choices":[]})"}) {
    const auto at = try_of(fb::KvProtocol::Nixl, plain);
    const auto nixl = make_nixl();
    nixl->begin(at);
    const auto then = nixl->on_prefill(at, answer);
    REQUIRE(then.decode);
    CHECK(then.decode->body == plain);
    CHECK_FALSE(nixl->release(at));
  }
  const auto at = try_of(fb::KvProtocol::Nixl, plain);
  CHECK_FALSE(make_nixl()->on_prefill(at, "<html>").problem.empty());
}

TEST_CASE("ascend: as nixl, and with a least length, for only such requests hand blocks over") {
  const auto at = try_of(fb::KvProtocol::Ascend, R"({"prompt":"p","min_tokens":3})");
  const auto first = make_ascend()->begin(at);
  REQUIRE(first.prefill);
  CHECK(find_value(first.prefill->body, "min_tokens") == "1");
  CHECK(find_value(first.prefill->body, "max_tokens") == "1");
}

TEST_CASE("mooncake: both at once, matched by a transfer id, with the engine id of the rank") {
  auto at = try_of(fb::KvProtocol::Mooncake, plain);
  at.pair.prefill->rank = 1;
  const auto mooncake = make_mooncake();
  const auto first = mooncake->begin(at);
  CHECK(first.query_bootstrap);
  CHECK_FALSE(first.prefill);
  const auto then = mooncake->on_bootstrap(at, R"({"0":{"engine_id":"e0"},"1":{"engine_id":"e\"1","x":[]}})");
  REQUIRE(then.prefill);
  REQUIRE(then.decode);
  CHECK(find_value(then.prefill->body, "kv_transfer_params") ==
        R"({"do_remote_decode":true,"do_remote_prefill":false,"transfer_id":"xfer-abc123"})");
  CHECK(then.prefill->headers == std::vector<std::pair<std::string, std::string>>{{"X-data-parallel-rank", "1"}});
  CHECK(find_value(then.decode->body, "kv_transfer_params") ==
        R"({"do_remote_decode":false,"do_remote_prefill":true,"remote_bootstrap_addr":"http://10.0.0.1:9001",)"
        R"("remote_engine_id":"e\"1","transfer_id":"xfer-abc123"})");
  CHECK_FALSE(mooncake->on_bootstrap(at, R"({"0":{"engine_id":"e0"}})").problem.empty());
}

TEST_CASE("mooncake: a bootstrap answer that is known is not asked for") {
  auto at = try_of(fb::KvProtocol::Mooncake, plain);
  at.bootstrap = R"({"0":{"engine_id":"e0"}})";
  const auto first = make_mooncake()->begin(at);
  CHECK_FALSE(first.query_bootstrap);
  CHECK(first.prefill);
  CHECK(first.decode);
}

TEST_CASE("sglang: the same body to both, a room each prompt") {
  const auto at = try_of(fb::KvProtocol::Sglang, plain);
  const auto first = make_sglang()->begin(at);
  REQUIRE(first.prefill);
  REQUIRE(first.decode);
  CHECK(first.prefill->body == first.decode->body);
  CHECK(first.decode->body == R"({"prompt":"p","max_tokens":5,"bootstrap_host":"10.0.0.1","bootstrap_port":9001,)"
                              R"("bootstrap_room":9223372036854775807})");
  auto batch = try_of(fb::KvProtocol::Sglang, R"({"prompt":["p","q"]})");
  batch.random = 5;
  batch.pair.prefill->bootstrap_port.reset();
  CHECK(
      make_sglang()->begin(batch).decode->body ==
      R"({"prompt":["p","q"],"bootstrap_host":["10.0.0.1","10.0.0.1"],"bootstrap_port":[null,null],"bootstrap_room":[5,6]})");
}

TEST_CASE("layer-wise: decode first, prefill when the metaserver is asked") {
  const auto at = try_of(fb::KvProtocol::AscendLayerwise, plain);
  const auto layerwise = make_ascend_layerwise();
  CHECK(layerwise->asks_metaserver());
  const auto first = layerwise->begin(at);
  CHECK_FALSE(first.prefill);
  REQUIRE(first.decode);
  CHECK(find_value(first.decode->body, "kv_transfer_params") ==
        R"({"do_remote_decode":false,"do_remote_prefill":true,"metaserver":"http://proxy:8100/v1/metaserver"})");
  const std::string params = R"({"request_id":"cmpl-abc123-0","remote_block_ids":[7],"remote_port":30000})";
  const auto then = layerwise->on_metaserver(at, "cmpl-abc123-0", params);
  REQUIRE(then.prefill);
  CHECK(then.prefill->body ==
        R"({"prompt":"p","max_tokens":1,"stream":false,"min_tokens":1,"kv_transfer_params":)" + params + "}");
  // Decode tries three times.
  CHECK_FALSE(layerwise->on_metaserver(at, "cmpl-abc123-0", params).prefill);
}

TEST_CASE("layer-wise: a list of prompts waits for all its children, and prefill goes once") {
  const auto at = try_of(fb::KvProtocol::AscendLayerwise, R"({"prompt":["p","q"]})");
  const auto layerwise = make_ascend_layerwise();
  layerwise->begin(at);
  CHECK_FALSE(layerwise->on_metaserver(at, "cmpl-abc123-1", R"({"b":1})").prefill);
  const auto then = layerwise->on_metaserver(at, "cmpl-abc123-0", R"({"b":0})");
  REQUIRE(then.prefill);
  CHECK(find_value(then.prefill->body, "kv_transfer_params") ==
        R"({"b":0,"batch_kv_transfer_params":{"cmpl-abc123-0":{"b":0},"cmpl-abc123-1":{"b":1}}})");
}

TEST_CASE("every protocol but none has its machine and its name") {
  for (const auto kind : fb::EnumValuesKvProtocol()) {
    CHECK((make_protocol(kind) != nullptr) == (kind != fb::KvProtocol::None));
    CHECK_FALSE(name_of(kind).empty());
  }
}
