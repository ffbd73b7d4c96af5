#include "actors/proxy/continuation.hpp"

#include <doctest/doctest.h>

#include "actors/proxy/event_splitter.hpp"

using namespace infernex;
using namespace infernex::proxy;

namespace {

std::string says(const std::string& id, const std::string& text, const std::string& more = "\"finish_reason\":null") {
  return "data: {\"id\":\"" + id +
         "\",\"created\":1,\"model\":\"m\",\"choices\":[{\"index\":0,\"delta\":{\"content\":" + quoted(text) + "}," +
         more + "}]}\n\n";
}
std::string role(const std::string& id) {
  return "data: {\"id\":\"" + id +
         "\",\"created\":1,\"model\":\"m\",\"choices\":[{\"index\":0,\"delta\":{\"role\":\"assistant\",\"content\":"
         "\"\"},"
         "\"finish_reason\":null}]}\n\n";
}
std::string usage(const std::string& id, int prompt, int completion, const std::string& details = "null") {
  return "data: {\"id\":\"" + id +
         "\",\"created\":1,\"model\":\"m\",\"choices\":[],\"usage\":{\"prompt_tokens\":" + std::to_string(prompt) +
         ",\"total_tokens\":" + std::to_string(prompt + completion) +
         ",\"completion_tokens\":" + std::to_string(completion) + ",\"prompt_tokens_details\":" + details + "}}\n\n";
}
const std::string done = "data: [DONE]\n\n";
const std::string length = R"("finish_reason":"length")";
const std::string prefill_answer =
    R"({"usage":{"prompt_tokens":10,"completion_tokens":1,"prompt_tokens_details":{"cached_tokens":8}}})";

struct client {
  explicit client(const std::string& json, api kind = api::chat)
      : body(json), facts(*read_request(kind, json)), talk(facts) {}
  /// Feeds a stream in pieces of so many bytes; what the last event was.
  seen stream(const std::string& bytes, std::size_t piece) {
    event_splitter events;
    seen last;
    for (std::size_t at = 0; at < bytes.size(); at += piece) {
      const auto part = bytes.substr(at, piece);
      events.feed(part);
      while (const auto event = events.next()) {
        last = talk.take_event(*event, out);
        if (last.complete || last.recomputed || !last.failure.empty()) return last;
      }
    }
    return last;
  }
  std::string body;
  request_facts facts;
  continuation talk;
  std::string out;
};

const std::string chat = R"({"messages":[{"role":"user","content":"hi"}],"stream":true,)"
                         R"("stream_options":{"include_usage":true},"max_tokens":5})";

}  // namespace

TEST_CASE("a migrated stream is that of an undisturbed run, whatever pieces it came in") {
  const auto undisturbed = role("a") + says("a", "one ") + says("a", "two ") + says("a", "three ") + says("a", "four") +
                           says("a", "", length) + usage("a", 10, 5, R"({"cached_tokens":8})") + done;
  const auto before = role("a") + says("a", "one ") + says("a", "two ");
  const auto after = role("b") + says("b", "three ") + says("b", "four") + says("b", "", length) +
                     usage("b", 12, 3, R"({"cached_tokens":12})") + done;
  for (std::size_t piece = 1; piece < after.size(); ++piece) {
    client c(chat);
    c.talk.note_prefill(prefill_answer);
    c.stream(before, piece);
    REQUIRE(c.talk.begun());
    CHECK(
        c.talk.next_body(c.body) ==
        R"({"messages":[{"role":"user","content":"hi"},{"role":"assistant","content":"one two "}],"stream":true,)"
        R"("stream_options":{"include_usage":true},"max_tokens":3,"continue_final_message":true,"add_generation_prompt":false})");
    c.talk.next_engine(c.out);
    // Another prefill's answer is not that of an undisturbed run.
    c.talk.note_prefill(R"({"usage":{"prompt_tokens":12,"prompt_tokens_details":{"cached_tokens":11}}})");
    CHECK(c.stream(after, piece).complete);
    REQUIRE(c.out == undisturbed);
  }
}

TEST_CASE("a recomputed request is given on, its mark is not") {
  client c(chat);
  const auto last = c.stream(
      role("a") + says("a", "one ") + says("a", "two", R"("finish_reason":"stop","stop_reason":"recomputed")") + done,
      7);
  CHECK(last.recomputed);
  CHECK(c.talk.generated() == "one two");
  CHECK(c.out.find("recomputed") == std::string::npos);
  CHECK(c.out.find("[DONE]") == std::string::npos);
  CHECK(c.out.find("two") != std::string::npos);
  CHECK(find_value(*c.talk.next_body(c.body), "max_tokens") == "3");
}

TEST_CASE("a conversation that goes on with its last message is gone on with there") {
  client c(R"({"messages":[{"role":"user","content":"q"},{"role":"assistant","content":"The "}],"stream":true,)"
           R"("continue_final_message":true,"add_generation_prompt":false})");
  c.stream(says("a", "answer"), 1000);
  CHECK(c.talk.next_body(c.body) ==
        R"({"messages":[{"role":"user","content":"q"},{"role":"assistant","content":"The answer"}],"stream":true,)"
        R"("continue_final_message":true,"add_generation_prompt":false})");
  client parts(R"({"messages":[{"role":"assistant","content":[{"type":"text","text":"a"}]}],"stream":true,)"
               R"("continue_final_message":true})");
  parts.stream(says("a", "b"), 1000);
  CHECK(find_value(*parts.talk.next_body(parts.body), "messages") ==
        R"([{"role":"assistant","content":[{"type":"text","text":"a"},{"type":"text","text":"b"}]}])");
  // One that merely ends with an assistant's message gets another.
  client other(R"({"messages":[{"role":"assistant","content":"x"}],"stream":true})");
  other.stream(says("a", "y"), 1000);
  CHECK(find_value(*other.talk.next_body(other.body), "messages") ==
        R"([{"role":"assistant","content":"x"},{"role":"assistant","content":"y"}])");
}

TEST_CASE("completions go on with prompt and text; without a limit the engine's own counts") {
  client c(R"({"prompt":"1 2 ","stream":true})", api::completions);
  c.stream("data: {\"id\":\"a\",\"choices\":[{\"text\":\"3\\n\",\"finish_reason\":null}]}\n\n", 3);
  CHECK(c.talk.next_body(c.body) == R"({"prompt":"1 2 3\u000a","stream":true,"max_tokens":15})");
}

TEST_CASE("a stop string over the seam stops, and only one over the seam") {
  const std::string with_stop = R"({"messages":[{}],"stream":true,"stop":["END.","never"])";
  for (std::size_t piece = 1; piece < 200; piece += 7) {
    client c(with_stop + "}");
    c.stream(role("a") + says("a", "text E"), piece);
    const auto so_far = c.out;
    c.talk.next_engine(c.out);
    const auto last = c.stream(says("b", "N") + says("b", "D. and more") + says("b", "x", length) + done, piece);
    CHECK(last.complete);
    const auto rest = c.out.substr(so_far.size());
    CHECK(rest.find("and more") == std::string::npos);
    CHECK(rest.find("\"content\"") == std::string::npos);
    CHECK(rest.find(R"("finish_reason":"stop","stop_reason":"END.")") != std::string::npos);
    CHECK(rest.ends_with(done));
  }
  client shown(with_stop + R"(,"include_stop_str_in_output":true})");
  shown.stream(says("a", "text E"), 1000);
  shown.talk.next_engine(shown.out);
  CHECK(shown.stream(says("b", "N") + says("b", "D. and more"), 1000).complete);
  CHECK(shown.out.find(R"("content":"ND.")") != std::string::npos);

  client no(with_stop + "}");
  no.stream(says("a", "text E"), 1000);
  no.talk.next_engine(no.out);
  CHECK_FALSE(no.stream(says("b", "N") + says("b", "O, on"), 1000).complete);
  CHECK(no.out == says("a", "text E") + says("a", "N") + says("a", "O, on"));
}

TEST_CASE("the role comes once, also when the first engine fails before its first token") {
  client c(chat);
  c.stream(role("a"), 1000);
  CHECK_FALSE(c.talk.begun());
  CHECK(c.talk.next_body(c.body) == c.body);
  c.talk.next_engine(c.out);
  c.stream(role("b") + says("b", "hi") + says("b", "", length) + done, 1000);
  CHECK(c.out == role("a") + says("a", "hi") + says("a", "", length) + done);
}

TEST_CASE("nothing is left to generate") {
  client c(R"({"messages":[{}],"stream":true,"stream_options":{"include_usage":true},"max_tokens":2})");
  c.talk.note_prefill(prefill_answer);
  c.stream(says("a", "x") + says("a", "y"), 1000);
  REQUIRE(c.talk.spent());
  const auto end = c.talk.closing();
  CHECK(end.find(R"("finish_reason":"length")") != std::string::npos);
  CHECK(end.find(R"("usage":{"prompt_tokens":10,"total_tokens":12,"completion_tokens":2,)") != std::string::npos);
  CHECK(end.ends_with(done));
}

TEST_CASE("tool calls and reasoning cannot be gone on with") {
  client c(chat);
  c.stream(R"(data: {"id":"a","choices":[{"delta":{"reasoning_content":"hm"}}]})"
           "\n\n",
           1000);
  CHECK(c.talk.begun());
  CHECK_FALSE(c.talk.obstacle().empty());
  CHECK_FALSE(client(R"({"messages":[{}],"n":2})").talk.obstacle().empty());
}

TEST_CASE("an engine's error in its stream is its failure, a client's is the answer") {
  client c(chat);
  CHECK(c.stream("data: {\"error\":{\"message\":\"EngineDead\",\"code\":500}}\n\n", 1000).failure == "EngineDead");
  CHECK(c.out.empty());
  client d(chat);
  CHECK(d.stream("data: {\"error\":{\"message\":\"bad\",\"code\":400}}\n\n", 1000).failure.empty());
  CHECK(d.out.find("bad") != std::string::npos);
}

TEST_CASE("whole answers are put together too") {
  client c(R"({"messages":[{}],"max_tokens":5})");
  c.talk.note_prefill(prefill_answer);
  CHECK(
      c.talk
          .take_whole(R"({"id":"a","choices":[{"message":{"role":"assistant","content":"one "},"finish_reason":"stop",)"
                      R"("stop_reason":"recomputed"}],"usage":{"prompt_tokens":10,"completion_tokens":2}})",
                      c.out)
          .recomputed);
  CHECK(c.out.empty());
  CHECK_FALSE(c.talk.begun());
  CHECK(find_value(*c.talk.next_body(c.body), "max_tokens") == "3");
  c.talk.next_engine(c.out);
  CHECK(c.talk
            .take_whole(
                R"({"id":"b","choices":[{"message":{"role":"assistant","content":"two"},"finish_reason":"length"}],)"
                R"("usage":{"prompt_tokens":12,"completion_tokens":3,"total_tokens":15}})",
                c.out)
            .complete);
  CHECK(
      c.out ==
      R"({"id":"b","choices":[{"message":{"role":"assistant","content":"one two"},"finish_reason":"length"}],)"
      R"("usage":{"prompt_tokens":10,"completion_tokens":5,"total_tokens":15,"prompt_tokens_details":{"cached_tokens":8}}})");
}
