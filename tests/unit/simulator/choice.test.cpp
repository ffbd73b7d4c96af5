#include "actors/simulator/choice.hpp"

#include <doctest/doctest.h>

using namespace infernex::simulator;

namespace {

/// Pushes piece by piece; what is shown, joined by '|'.
std::string shown(stop_matcher& matcher, const std::vector<std::string>& pieces) {
  std::string all;
  for (const auto& piece : pieces) {
    all += matcher.push(piece, true) + "|";
    if (matcher.matched()) break;
  }
  return all;
}

token_output token(std::string_view text, std::optional<finish_reason> finish = {}) {
  return {.id = 1, .token = (*encode(text)).at(0), .finish = finish};
}

}  // namespace

TEST_CASE("a stop string that spans pieces is found, and nothing of it is shown") {
  stop_matcher matcher({"STOP"}, false);
  CHECK(shown(matcher, {"ab", "cS", "TO", "Pxy"}) == "ab|c|||");
  CHECK(matcher.matched() == "STOP");
}

TEST_CASE("text that only looked like a stop string is shown as soon as that is clear") {
  stop_matcher matcher({"STOP"}, false);
  CHECK(shown(matcher, {"ST", "ST", "O", "x"}) == "|ST||STOx|");
  CHECK_FALSE(matcher.matched());
  CHECK(matcher.flush() == "");
}

TEST_CASE("what is held back at the end is not lost") {
  stop_matcher matcher({"STOP"}, false);
  CHECK(shown(matcher, {"aST"}) == "a|");
  CHECK(matcher.flush() == "ST");
}

TEST_CASE("the first of several stop strings wins, and can be kept") {
  stop_matcher first({"yy", "x"}, false);
  CHECK(shown(first, {"ab xyy"}) == "ab |");
  CHECK(first.matched() == "x");
  stop_matcher kept({"yy"}, true);
  CHECK(shown(kept, {"aby", "yz"}) == "ab|yy|");
}

TEST_CASE("no stop counts before min_tokens") {
  choice early({.stops = {" b"}, .keep_stop = false, .min_tokens = 3});
  CHECK(early.push(token(" a")).text == " a");
  CHECK(early.push(token(" b")).text == " b");
  const auto end = early.push(token(" b"));
  CHECK(end.text == "");
  CHECK(end.finish == finish_reason::stop);
  CHECK(end.stop_string == " b");
  CHECK(early.tokens() == 3);
}

TEST_CASE("an answer that runs out shows what was held back") {
  choice one({.stops = {"bcd"}});
  CHECK(one.push(token(" a")).text == " a");
  const auto end = one.push(token("bc", finish_reason::length));
  CHECK(end.text == "bc");
  CHECK(end.finish == finish_reason::length);
  CHECK_FALSE(end.stop_string);
}

TEST_CASE("the end token has no text and counts as a token") {
  choice one({});
  const auto end = one.push({.id = 1, .token = eos_token, .finish = finish_reason::stop});
  CHECK(end.text == "");
  CHECK(end.finish == finish_reason::stop);
  CHECK(one.tokens() == 1);
}
