// The policy of failures, for every protocol where it matters: what is sent, broken off, tried elsewhere, given up.

#include <doctest/doctest.h>

#include "tests/unit/proxy/talk.hpp"

using namespace infernex;
using namespace infernex::proxy;

TEST_CASE("nixl, undisturbed: prefill, then decode, then the stream as it is") {
  talk t(fb::KvProtocol::Nixl);
  REQUIRE(t.find<action::choose_pair>());
  t.pair("p1", "d1");
  CHECK(t.sent(leg::prefill));
  CHECK_FALSE(t.sent(leg::decode));
  t.prefilled();
  REQUIRE(t.sent(leg::decode));
  t.piece(text_event);
  CHECK(t.forwarded() == text_event);
  CHECK(t.it.first_token());
  REQUIRE(t.find<action::report>());
  CHECK(t.find<action::report>()->worked);
  t.piece(end_event);
  CHECK(t.forwarded() == end_event);
  CHECK(t.it.over());
  CHECK(t.it.on_decode_end(t.n()).empty());
}

TEST_CASE("prefill fails: another prefill, the same decode; then decode by itself") {
  for (const auto& how : {broken, refused, slow}) {
    talk t(fb::KvProtocol::Nixl);
    t.pair("p1", "d1");
    t.failed(leg::prefill, how);
    const auto* wish = t.find<action::choose_pair>();
    REQUIRE(wish);
    CHECK(wish->avoid_prefills == std::vector<std::string>{"p1"});
    CHECK(wish->prefer_decode == "d1");
    CHECK_FALSE(wish->decode_only);
    CHECK_FALSE(t.find<action::report>()->worked);
    t.pair("p2", "d1");
    t.prefilled(500, "{}");
    REQUIRE(t.find<action::choose_pair>());
    CHECK(t.find<action::choose_pair>()->decode_only);
    t.pair("", "d1");
    REQUIRE(t.sent(leg::decode));
    CHECK(t.sent(leg::decode)->what.body == t.body);
    t.piece(text_event + end_event);
    CHECK(t.it.over());
    CHECK(t.it.prefilled_locally());
  }
}

TEST_CASE("without local prefill the last failure is a clear error") {
  conversation_settings how;
  how.local_prefill = false;
  how.max_attempts = 2;
  talk t(fb::KvProtocol::Nixl, true, how);
  t.pair("p1", "d1");
  t.failed(leg::prefill, broken);
  t.pair("p2", "d1");
  t.failed(leg::prefill, slow);
  const auto* fail = t.find<action::fail>();
  REQUIRE(fail);
  CHECK(fail->status == 504);
  CHECK(fail->message ==
        "No pair of engines could answer: prefill p1 broke the connection; prefill p2 did not answer in time");
}

TEST_CASE("a mistake of the client's is answered as the engine said it") {
  talk t(fb::KvProtocol::Nixl);
  t.pair("p1", "d1");
  t.prefilled(400, "{\"error\":1}");
  REQUIRE(t.find<action::answer>());
  CHECK(t.find<action::answer>()->status == 400);
  CHECK(t.find<action::answer>()->body == "{\"error\":1}");
  CHECK_FALSE(t.find<action::report>());
}

TEST_CASE("both at once: the first failure of either leg breaks off the other") {
  for (const auto by : {fb::KvProtocol::Mooncake, fb::KvProtocol::Sglang}) {
    for (const auto which : {leg::prefill, leg::decode}) {
      talk t(by);
      t.pair("p1", "d1", engine_ids);
      REQUIRE(t.sent(leg::prefill));
      REQUIRE(t.sent(leg::decode));
      t.failed(which, refused);
      CHECK(t.cancelled(leg::prefill));
      CHECK(t.cancelled(leg::decode));
      REQUIRE(t.find<action::choose_pair>());
      const auto& wish = *t.find<action::choose_pair>();
      CHECK(wish.avoid_prefills.size() == (which == leg::prefill ? 1 : 0));
      CHECK(wish.avoid_decodes.size() == (which == leg::decode ? 1 : 0));
      // What comes late from the attempt that has ended is nothing.
      const auto late = t.n();
      t.pair("p2", "d2", engine_ids);
      CHECK(t.it.on_leg_failed(late, leg::decode, broken).empty());
      CHECK(t.it.on_prefill_answer(late, 500, "").empty());
    }
  }
}

TEST_CASE("both at once: prefill is let finish, and what it says at the end disturbs nobody") {
  talk t(fb::KvProtocol::Sglang);
  t.pair("p1", "d1");
  t.piece(text_event);
  t.failed(leg::prefill, broken);
  CHECK(t.wanted.empty());
  t.piece(end_event);
  CHECK(t.it.over());
  CHECK_FALSE(t.cancelled(leg::prefill));
}

TEST_CASE("mooncake: an engine id from memory may be of an engine that has gone") {
  talk t(fb::KvProtocol::Mooncake);
  t.pair("p1", "d1", engine_ids);
  t.failed(leg::decode, broken);
  REQUIRE(t.find<action::forget_bootstrap>());
  CHECK(t.find<action::forget_bootstrap>()->address == "p1");
  // The same pair again, asked anew.
  CHECK(t.find<action::choose_pair>()->avoid_decodes.empty());
  CHECK(t.find<action::choose_pair>()->prefer_decode == "d1");
  t.pair("p1", "d1");
  REQUIRE(t.find<action::query_bootstrap>());
  t.wanted = t.it.on_bootstrap(t.n(), engine_ids);
  CHECK(t.sent(leg::decode));
  t.failed(leg::decode, broken);
  CHECK(t.find<action::choose_pair>()->avoid_decodes == std::vector<std::string>{"d1"});
}

TEST_CASE("mooncake: a bootstrap endpoint that does not answer is a failure of prefill") {
  talk t(fb::KvProtocol::Mooncake);
  t.pair("p1", "d1");
  t.wanted = t.it.on_bootstrap(t.n(), refused);
  REQUIRE(t.find<action::choose_pair>());
  CHECK(t.find<action::choose_pair>()->avoid_prefills == std::vector<std::string>{"p1"});
}

TEST_CASE("not streamed: nothing has reached the client, so everything can be tried again") {
  talk t(fb::KvProtocol::Nixl, false);
  t.pair("p1", "d1");
  t.prefilled();
  t.failed(leg::decode, broken);
  REQUIRE(t.find<action::choose_pair>());
  t.pair("p1", "d2");
  t.prefilled();
  t.wanted = t.it.on_decode_answer(t.n(), 200, R"({"choices":[{"message":{"content":"x"}}]})");
  REQUIRE(t.find<action::answer>());
  CHECK(t.find<action::answer>()->body == R"({"choices":[{"message":{"content":"x"}}]})");
  CHECK(t.it.over());
}

TEST_CASE("the client leaves: both legs are broken off at every stage, and nothing more is wanted") {
  for (const auto by : {fb::KvProtocol::Nixl, fb::KvProtocol::Mooncake, fb::KvProtocol::Ascend,
                        fb::KvProtocol::AscendLayerwise, fb::KvProtocol::Sglang}) {
    for (int stage = 0; stage < 4; ++stage) {
      talk t(by);
      bool prefill = false, decode = false;
      const auto note = [&] {
        prefill = prefill || t.sent(leg::prefill);
        decode = decode || t.sent(leg::decode);
      };
      if (stage > 0) t.pair("p1", "d1", by == fb::KvProtocol::Mooncake ? engine_ids : "");
      note();
      if (stage > 1 && by == fb::KvProtocol::AscendLayerwise) t.wanted = t.it.on_metaserver(t.n(), "chatcmpl-id", "{}");
      note();
      bool answered = stage > 1 && prefill;
      if (answered) t.prefilled();
      note();
      if (stage > 2) t.piece(text_event);
      t.wanted = t.it.on_client_gone();
      CHECK(t.it.over());
      CHECK(t.cancelled(leg::prefill) == (prefill && !answered));
      CHECK(t.cancelled(leg::decode) == decode);
      const bool pulls = by == fb::KvProtocol::Nixl || by == fb::KvProtocol::Ascend;
      CHECK((t.find<action::release>() != nullptr) == (pulls && stage == 2));
      CHECK_FALSE(t.find<action::choose_pair>());
      CHECK(t.it.on_client_gone().empty());
      CHECK(t.it.on_deadline(true).empty());
      CHECK(t.it.on_leg_failed(t.n(), leg::decode, broken).empty());
    }
  }
}

TEST_CASE("the deadline passes: both legs are broken off, and the client is told") {
  talk t(fb::KvProtocol::Mooncake);
  t.pair("p1", "d1", engine_ids);
  t.wanted = t.it.on_deadline(false);
  CHECK(t.cancelled(leg::prefill));
  CHECK(t.cancelled(leg::decode));
  REQUIRE(t.find<action::fail>());
  CHECK(t.find<action::fail>()->status == 504);
  CHECK_FALSE(t.find<action::report>());
}

TEST_CASE("no pair at all is said at once") {
  talk t(fb::KvProtocol::Nixl);
  t.wanted = t.it.on_no_pair("no decode engine of the group is ready");
  REQUIRE(t.find<action::fail>());
  CHECK(t.find<action::fail>()->status == 503);
}

TEST_CASE("an event without an end is not kept for ever") {
  talk t(fb::KvProtocol::Nixl);
  t.pair("p1", "d1");
  t.prefilled();
  t.piece(text_event);
  const std::string endless(300'000, 'x');
  for (int i = 0; i < 5 && !t.find<action::choose_pair>(); ++i) t.piece(endless);
  CHECK(t.find<action::choose_pair>());
}
