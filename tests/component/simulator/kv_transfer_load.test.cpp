#include "tests/component/simulator/pd_fixture.hpp"

using namespace infernex;
using namespace infernex::test;
using simulator::transfer_protocol;
using simulator::transfer_role;

namespace {

json::object numbered_chat(int number) {
  return chat_body(std::string(700, static_cast<char>('a' + number)) + " go on", 12);
}

}  // namespace

TEST_CASE("many transfers at once through little memory all come to their end") {
  auto takes = pd_fixture::values_of(transfer_protocol::nixl, transfer_role::decode);
  takes.total_blocks = 48;  // three prompts, each of 14 blocks and a rest
  takes.kv_transfer.timeout = std::chrono::seconds(30);
  const pd_fixture pair(pd_fixture::values_of(transfer_protocol::nixl, transfer_role::prefill), takes);
  const engine_fixture one;
  std::vector<std::future<reply>> answers;
  for (int i = 0; i < 16; ++i) {
    const auto prefilled =
        pair.prefill.post(chat_path, prefill_of(numbered_chat(i), json::object{{"do_remote_decode", true}}));
    answers.push_back(post_later(
        pair.decode, with_transfer(numbered_chat(i), prefilled.parsed().at("kv_transfer_params")), std::to_string(i)));
  }
  for (int i = 0; i < 16; ++i) {
    CHECK(said(answers[static_cast<std::size_t>(i)].get()) == said(one.post(chat_path, numbered_chat(i))));
  }
  CHECK(becomes_idle(pair.decode));
  CHECK(becomes_idle(pair.prefill));
}

TEST_CASE("clients that leave at any moment leave nothing, whatever the protocol") {
  for (const auto protocol : {transfer_protocol::nixl, transfer_protocol::mooncake, transfer_protocol::sglang}) {
    const pd_fixture pair(protocol);
    const auto body = [&](bool gives, int room) {
      auto made = numbered_chat(room);
      const auto key = "xfer-" + std::to_string(room);
      if (protocol == transfer_protocol::sglang) {
        made["bootstrap_host"] = "127.0.0.1";
        made["bootstrap_port"] = pair.prefill.engine->kv_port();
        made["bootstrap_room"] = room;
      } else if (protocol == transfer_protocol::mooncake) {
        made["kv_transfer_params"] = {
            {gives ? "do_remote_decode" : "do_remote_prefill", true},
            {"transfer_id", key},
            {"remote_bootstrap_addr", "http://127.0.0.1:" + std::to_string(pair.prefill.engine->kv_port())}};
        if (gives) made["max_tokens"] = 1;
      } else {
        made = prefill_of(std::move(made), json::object{{"do_remote_decode", true}});
      }
      return made;
    };
    // Decode alone, whose client leaves while it waits for a prefill that never comes.
    if (protocol != transfer_protocol::nixl) {
      auto waiting = pair.decode.open("POST", chat_path, json::serialize(body(false, 1)));
      REQUIRE(eventually([&] { return state_of(pair.decode).at("taking") == 1; }));
      waiting.close();
      CHECK(becomes_idle(pair.decode));
    }
    // Prefill alone, whose client leaves at once: whatever it holds is free by the lease's end at the latest, and
    // SGLang's, which waits for the reader, at once.
    auto prefilling = pair.prefill.open("POST", chat_path, json::serialize(body(true, 2)));
    if (protocol == transfer_protocol::sglang)
      REQUIRE(eventually([&] { return !state_of(pair.prefill).at("leases").as_array().empty(); }));
    prefilling.close();
    if (protocol == transfer_protocol::sglang) CHECK(becomes_idle(pair.prefill));
    CHECK(eventually([&] { return state_of(pair.prefill).at("answering") == 0; }));
  }
}
