// What a conversation tells of its pairs, and how it goes on when engines are gone for a moment.

#include <doctest/doctest.h>

#include "actors/proxy/conversation.hpp"

using namespace infernex;
using namespace infernex::proxy;

namespace {

engine_ref pair_engine(const std::string& name) { return {name, "http://" + name, name, {}, {}, {}}; }
const std::string held_answer = R"({"usage":{"prompt_tokens":9},"kv_transfer_params":{"remote_engine_id":"p"}})";
const std::string one_token =
    R"(data: {"id":"a","choices":[{"index":0,"delta":{"content":"one "},"finish_reason":null}]})"
    "\n\n";
const std::string the_end = R"(data: {"id":"a","choices":[{"index":0,"delta":{},"finish_reason":"stop"}]})"
                            "\n\ndata: [DONE]\n\n";
const leg_failure gone_away{"broke the connection", false, false, true};
const leg_failure nobody_there{"refused the connection", false, true};
const leg_failure too_slow{"did not answer in time", true, false};

template <class A>
const A* first_of(const actions& all) {
  for (const auto& one : all) {
    if (const auto* a = std::get_if<A>(&one)) return a;
  }
  return nullptr;
}

/// A conversation that begins with a pair p1, d1.
struct begun {
  explicit begun(fb::KvProtocol by, bool stream = true, conversation_settings how = {})
      : protocol(by),
        body(std::string(R"({"messages":[{"role":"user","content":"hi"}])") + (stream ? R"(,"stream":true})" : "}")),
        it(how, *read_request(api::chat, body), body) {
    it.start();
    pair("p1", "d1");
  }
  actions pair(const std::string& p, const std::string& d) {
    return it.on_pair({pair_engine(p), pair_engine(d)}, make_protocol(protocol), "id", 1, "http://meta", {});
  }
  actions prefilled() { return it.on_prefill_answer(it.attempt_number(), 200, held_answer); }
  actions failed(leg which, const leg_failure& how) { return it.on_leg_failed(it.attempt_number(), which, how); }
  actions piece(const std::string& bytes) { return it.on_decode_piece(it.attempt_number(), bytes); }

  fb::KvProtocol protocol;
  std::string body;
  conversation it;
};

}  // namespace

TEST_CASE("a decode engine that hangs until the deadline is told of, unless it had little of the time") {
  for (const bool blame : {true, false}) {
    begun t(fb::KvProtocol::Nixl, false);
    t.prefilled();
    const auto wanted = t.it.on_deadline(blame);
    const auto* told = first_of<action::report>(wanted);
    REQUIRE((told != nullptr) == blame);
    if (told) CHECK_FALSE(told->worked);
    if (told) CHECK(told->failed == leg::decode);
    // Nobody will fetch them.
    CHECK(first_of<action::release>(wanted));
    CHECK(first_of<action::fail>(wanted)->status == 504);
  }
  begun t(fb::KvProtocol::Nixl);
  const auto wanted = t.it.on_deadline(true);
  REQUIRE(first_of<action::report>(wanted));
  CHECK(first_of<action::report>(wanted)->failed == leg::prefill);
}

TEST_CASE("blocks that prefill holds for a request which decode refuses are let go") {
  begun t(fb::KvProtocol::Nixl);
  t.prefilled();
  const auto wanted = t.it.on_decode_answer(t.it.attempt_number(), 400, "{}");
  CHECK(first_of<action::release>(wanted));
  REQUIRE(first_of<action::answer>(wanted));
  CHECK(first_of<action::answer>(wanted)->status == 400);
}

TEST_CASE(
    "layer-wise: decode is done before the prefill it asked for has answered; its call is answered all the same") {
  for (const bool refused : {false, true}) {
    begun t(fb::KvProtocol::AscendLayerwise);
    t.it.on_metaserver(t.it.attempt_number(), "chatcmpl-id", "{}");
    const auto wanted =
        refused ? t.it.on_decode_answer(t.it.attempt_number(), 400, "{}") : t.piece(one_token + the_end);
    CHECK(t.it.over());
    REQUIRE(first_of<action::answer_metaserver>(wanted));
    CHECK(first_of<action::answer_metaserver>(wanted)->status == (refused ? 502 : 200));
  }
}

TEST_CASE("layer-wise: a call for an attempt that has ended begins no prefill for the next one") {
  begun t(fb::KvProtocol::AscendLayerwise);
  const auto first = t.it.attempt_number();
  t.failed(leg::decode, gone_away);
  CHECK(t.it.on_metaserver(first, "chatcmpl-id", "{}").empty());
  t.pair("p1", "d2");
  CHECK(t.it.on_metaserver(first, "chatcmpl-id", "{}").empty());
  CHECK(first_of<action::send>(t.it.on_metaserver(t.it.attempt_number(), "chatcmpl-id", "{}")));
}

TEST_CASE("an engine that nobody listens at costs no attempt, and is told of as such") {
  conversation_settings how;
  how.max_attempts = 1;
  how.local_prefill = false;
  begun t(fb::KvProtocol::Nixl, true, how);
  for (int i = 2; i < 8; ++i) {
    t.prefilled();
    const auto wanted = t.failed(leg::decode, nobody_there);
    REQUIRE(first_of<action::report>(wanted));
    CHECK(first_of<action::report>(wanted)->refused);
    REQUIRE(first_of<action::choose_pair>(wanted));
    CHECK(first_of<action::choose_pair>(wanted)->avoid_decodes.size() == static_cast<std::size_t>(i - 1));
    t.pair("p1", "d" + std::to_string(i));
  }
  // However often: the story stays short.
  while (t.it.story().size() < 1'000) {
    t.prefilled();
    t.failed(leg::decode, nobody_there);
    t.pair("p1", "d1");
  }
  const auto told = t.it.story();
  CHECK(told.ends_with("; and so on"));
  t.prefilled();
  t.failed(leg::decode, nobody_there);
  t.pair("p1", "d1");
  CHECK(t.it.story() == told);
  // Who got the request does.
  t.prefilled();
  CHECK(first_of<action::fail>(t.failed(leg::decode, gone_away)));
}

TEST_CASE("no pair is left: engines that have gone may come back, while there is time; those that are slow may not") {
  begun t(fb::KvProtocol::Nixl);
  t.prefilled();
  t.failed(leg::decode, gone_away);
  t.pair("p1", "d2");
  t.prefilled();
  t.failed(leg::decode, too_slow);
  auto wanted = t.it.on_no_pair("no decode engine of the group is ready", true);
  REQUIRE(first_of<action::choose_pair>(wanted));
  CHECK(first_of<action::choose_pair>(wanted)->wait);
  CHECK(first_of<action::choose_pair>(wanted)->avoid_decodes == std::vector<std::string>{"d2"});
  wanted = t.it.on_no_pair("no decode engine of the group is ready", false);
  REQUIRE(first_of<action::fail>(wanted));
  CHECK(first_of<action::fail>(wanted)->status == 504);

  begun slow(fb::KvProtocol::Nixl);
  slow.prefilled();
  slow.failed(leg::decode, too_slow);
  CHECK(first_of<action::fail>(slow.it.on_no_pair("no decode engine of the group is ready", true)));
}

TEST_CASE("what failed before the answer went on may be tried again; what has just failed, not yet") {
  begun t(fb::KvProtocol::Nixl);
  t.failed(leg::prefill, gone_away);
  t.pair("p2", "d1");
  t.prefilled();
  t.piece(one_token);
  auto wanted = t.failed(leg::decode, gone_away);
  REQUIRE(first_of<action::choose_pair>(wanted));
  CHECK(first_of<action::choose_pair>(wanted)->avoid_prefills.empty());
  CHECK(first_of<action::choose_pair>(wanted)->avoid_decodes == std::vector<std::string>{"d1"});
  CHECK(t.it.migrations() == 1);
  // An attempt that has added nothing is one more attempt, no migration.
  t.pair("p2", "d2");
  t.prefilled();
  wanted = t.failed(leg::decode, gone_away);
  REQUIRE(first_of<action::choose_pair>(wanted));
  CHECK(first_of<action::choose_pair>(wanted)->avoid_decodes == std::vector<std::string>{"d1", "d2"});
  CHECK(t.it.migrations() == 1);
}
