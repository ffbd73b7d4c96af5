// Protocols that need more than the two legs: Mooncake's bootstrap endpoint, the layer-wise protocol's metaserver.

#include <doctest/doctest.h>

#include "tests/component/proxy/support/proxy_fixture.hpp"

using namespace infernex;
using namespace infernex::test;
using behaviour = fake_pd_engine::behaviour;

namespace {

const std::string whole_text = "one two three four ";

proxy::settings quick() {
  proxy::settings how;
  how.exchange.prefill_timeout = 150ms;
  how.exchange.first_token_timeout = 300ms;
  how.exchange.connect_timeout = 300ms;
  return how;
}

std::string transfer_of(const std::string& body) { return std::string(proxy::find_value(body, "kv_transfer_params")); }

}  // namespace

TEST_CASE("mooncake: both legs by one transfer, and the engine's id is asked for once") {
  proxy_fixture f(fb::KvProtocol::Mooncake, {}, false);
  for (int i = 0; i < 2; ++i) CHECK(text_of_stream(f.chat(true).body) == whole_text);
  const auto asked = transfer_of(f.prefill[0]->bodies().at(0));
  const auto told = transfer_of(f.decode[0]->bodies().at(0));
  CHECK(proxy::find_value(asked, "transfer_id") == proxy::find_value(told, "transfer_id"));
  CHECK(proxy::find_value(told, "remote_engine_id") == "\"e-1\"");
  CHECK(proxy::find_value(told, "remote_bootstrap_addr") == "\"http://" + f.prefill[0]->address() + "\"");
  // By each thread of the proxy.
  CHECK(f.prefill[0]->bootstraps <= 2);
}

TEST_CASE("mooncake: decode fails, and the engine's id is asked for anew") {
  proxy_fixture f(fb::KvProtocol::Mooncake, quick(), false);
  CHECK(f.chat(true).status == 200);
  f.prefill[0]->engine_id = "e-2";
  f.decode[0]->does = behaviour::die;
  CHECK(text_of_stream(f.chat(true).body) == whole_text);
  CHECK(proxy::find_value(transfer_of(f.decode[1]->bodies().back()), "remote_engine_id") == "\"e-2\"");
  CHECK(eventually([&] { return f.all_quiet(); }));
}

TEST_CASE("mooncake: prefill fails, decode is left at once, and the other prefill engine takes over") {
  for (const auto how : {behaviour::error_500, behaviour::hang, behaviour::die}) {
    proxy_fixture f(fb::KvProtocol::Mooncake, quick(), false);
    f.prefill[0]->does = how;
    f.decode[0]->does = behaviour::hang;
    const auto answer = f.chat(true);
    CHECK(text_of_stream(answer.body) == whole_text);
    CHECK(f.decode[0]->left_by_client >= 1);
    CHECK(eventually([&] { return f.all_quiet(); }));
  }
}

TEST_CASE("layer-wise: decode asks the metaserver, prefill gets what decode said") {
  proxy_fixture f(fb::KvProtocol::AscendLayerwise, {}, false);
  CHECK(text_of_stream(f.chat(true).body) == whole_text);
  const auto body = f.prefill[0]->bodies().at(0);
  CHECK(proxy::find_value(transfer_of(body), "remote_block_ids") == "[7]");
  CHECK(proxy::find_value(body, "max_tokens") == "1");
  CHECK(proxy::find_value(body, "min_tokens") == "1");
  CHECK(f.call("POST", "/v1/metaserver", R"({"request_id":"chatcmpl-nobody"})").status == 404);
  CHECK(f.call("POST", "/v1/metaserver", "{}").status == 400);
}

TEST_CASE("layer-wise: prefill fails, and another one takes over") {
  for (const auto how : {behaviour::error_500, behaviour::hang, behaviour::die}) {
    proxy_fixture f(fb::KvProtocol::AscendLayerwise, quick(), false);
    f.prefill[0]->does = how;
    CHECK(text_of_stream(f.chat(true).body) == whole_text);
    CHECK(f.prefill[1]->asked == 1);
    CHECK(eventually([&] { return f.all_quiet(); }));
  }
}

TEST_CASE("layer-wise: recomputed goes back to the same decode engine") {
  proxy_fixture f(fb::KvProtocol::AscendLayerwise, {}, false);
  f.decode[0]->does = behaviour::recompute_after_two;
  CHECK(text_of_stream(f.chat(true).body) == whole_text);
  CHECK(f.decode[0]->asked == 2);
  CHECK(f.decode[1]->asked == 0);
}

TEST_CASE("a client that leaves takes both legs with it, also while decode waits for its prefill") {
  for (const auto protocol : {fb::KvProtocol::Mooncake, fb::KvProtocol::AscendLayerwise}) {
    for (const bool in_mid_stream : {false, true}) {
      proxy_fixture f(protocol, {}, false);
      if (!in_mid_stream) f.prefill[0]->does = behaviour::hang;
      if (!in_mid_stream && protocol == fb::KvProtocol::Mooncake) f.decode[0]->does = behaviour::hang;
      f.leave(in_mid_stream);
    }
  }
}
