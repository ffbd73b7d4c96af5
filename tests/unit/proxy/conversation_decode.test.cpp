// When the decode engine fails, gives a request back, or works: where the answer goes on.

#include <doctest/doctest.h>

#include "tests/unit/proxy/talk.hpp"

using namespace infernex;
using namespace infernex::proxy;

TEST_CASE("decode fails before its first token: another pair, and the blocks that prefill holds are let go") {
  for (const auto by : {fb::KvProtocol::Nixl, fb::KvProtocol::Ascend}) {
    talk t(by);
    t.pair("p1", "d1");
    t.prefilled();
    t.failed(leg::decode, refused);
    REQUIRE(t.find<action::release>());
    CHECK(t.find<action::release>()->avoid == std::vector<std::string>{"d1"});
    CHECK(find_value(t.find<action::release>()->what.body, "max_tokens") == "1");
    CHECK(t.find<action::choose_pair>()->avoid_decodes == std::vector<std::string>{"d1"});
    t.pair("p1", "d2");
    t.prefilled();
    t.piece(text_event + end_event);
    CHECK(t.it.over());
    CHECK(t.it.retries() == 1);
    CHECK(t.it.migrations() == 0);
  }
}

TEST_CASE("a transfer that fails is decode's 500, and another pair's turn") {
  talk t(fb::KvProtocol::Nixl);
  t.pair("p1", "d1");
  t.prefilled();
  t.wanted = t.it.on_decode_answer(t.n(), 500, "{}");
  CHECK(t.find<action::choose_pair>());
}

TEST_CASE("decode dies after its first token: the answer goes to another pair") {
  talk t(fb::KvProtocol::Nixl);
  t.pair("p1", "d1");
  t.prefilled();
  t.piece(text_event);
  t.failed(leg::decode, broken);
  REQUIRE(t.find<action::choose_pair>());
  CHECK_FALSE(t.find<action::release>());
  t.pair("p2", "d2");
  REQUIRE(t.sent(leg::prefill));
  CHECK(find_value(t.sent(leg::prefill)->what.body, "messages") ==
        R"([{"role":"user","content":"hi"},{"role":"assistant","content":"one "}])");
  t.prefilled();
  t.piece(end_event);
  CHECK(t.it.over());
  CHECK(t.it.migrations() == 1);
}

TEST_CASE("a stream that just ends has failed; migrations have an end too") {
  conversation_settings how;
  how.max_migrations = 2;
  talk t(fb::KvProtocol::Nixl, true, how);
  for (int i = 0; i < 3; ++i) {
    t.pair("p1", "d" + std::to_string(i));
    t.prefilled();
    t.piece(text_event);
    t.wanted = t.it.on_decode_end(t.n());
  }
  REQUIRE(t.find<action::fail>());
  CHECK(t.it.over());
  CHECK(t.it.migrations() == 2);
}

TEST_CASE("recomputed: a new pair, the same stream; layer-wise the same decode engine") {
  for (const auto by : {fb::KvProtocol::Ascend, fb::KvProtocol::AscendLayerwise}) {
    talk t(by);
    t.pair("p1", "d1");
    if (by == fb::KvProtocol::Ascend) {
      t.prefilled();
    } else {
      t.wanted = t.it.on_metaserver(t.n(), "chatcmpl-id", "{}");
      REQUIRE(t.sent(leg::prefill));
      t.prefilled();
      REQUIRE(t.find<action::answer_metaserver>());
      CHECK(t.find<action::answer_metaserver>()->status == 200);
    }
    t.piece(text_event + recomputed_event);
    CHECK(t.forwarded() == text_event);
    REQUIRE(t.find<action::choose_pair>());
    CHECK(t.find<action::choose_pair>()->prefer_decode == (by == fb::KvProtocol::Ascend ? "" : "d1"));
    CHECK(t.find<action::choose_pair>()->avoid_decodes.empty());
    CHECK(t.find<action::choose_pair>()->gave_back == (by == fb::KvProtocol::Ascend ? "d1" : ""));
    // The pair worked: it has no room now, which is no failure.
    REQUIRE(t.find<action::report>());
    CHECK(t.find<action::report>()->worked);
    CHECK(t.it.recomputes() == 1);
    CHECK(t.it.migrations() == 0);
  }
}

TEST_CASE("given back after a prefill failed: neither the decode engine of then nor decode alone is wished for") {
  conversation_settings how;
  how.max_prefill_attempts = 1;
  talk t(fb::KvProtocol::Ascend, true, how);
  t.pair("p1", "d1");
  t.failed(leg::prefill, refused);
  REQUIRE(t.find<action::choose_pair>());
  CHECK(t.find<action::choose_pair>()->decode_only);
  t.pair("", "d1");
  t.piece(text_event + recomputed_event);
  REQUIRE(t.find<action::choose_pair>());
  CHECK_FALSE(t.find<action::choose_pair>()->decode_only);
  CHECK(t.find<action::choose_pair>()->prefer_decode.empty());
  CHECK(t.find<action::choose_pair>()->gave_back == "d1");
}

TEST_CASE("that a pair works is told with its first token, once") {
  talk t(fb::KvProtocol::Nixl);
  t.pair("p1", "d1");
  t.prefilled();
  CHECK_FALSE(t.find<action::report>());
  t.piece(text_event);
  REQUIRE(t.find<action::report>());
  CHECK(t.find<action::report>()->worked);
  t.piece(end_event);
  CHECK_FALSE(t.find<action::report>());
}

TEST_CASE("sglang: decode engines compute no prompts, however many prefill engines fail") {
  talk t(fb::KvProtocol::Sglang);
  for (int i = 0; i < 2; ++i) {
    t.pair("p" + std::to_string(i), "d1");
    t.failed(leg::prefill, refused);
    REQUIRE(t.find<action::choose_pair>());
    CHECK_FALSE(t.find<action::choose_pair>()->decode_only);
  }
}

TEST_CASE("layer-wise: prefill fails, decode's call is answered and decode broken off") {
  talk t(fb::KvProtocol::AscendLayerwise);
  t.pair("p1", "d1");
  CHECK(t.sent(leg::decode));
  CHECK_FALSE(t.sent(leg::prefill));
  t.wanted = t.it.on_metaserver(t.n(), "chatcmpl-id", "{\"remote_port\":1}");
  REQUIRE(t.sent(leg::prefill));
  t.failed(leg::prefill, broken);
  REQUIRE(t.find<action::answer_metaserver>());
  CHECK(t.find<action::answer_metaserver>()->status == 502);
  CHECK(t.cancelled(leg::decode));
  CHECK(t.find<action::choose_pair>());
}
