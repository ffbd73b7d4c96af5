#include "actors/simulator/tokenizer.hpp"

#include <random>

#include <doctest/doctest.h>

using namespace infernex;
using namespace infernex::simulator;

namespace {

std::vector<token_id> tokens_of(std::string_view text) {
  auto tokens = encode(text);
  REQUIRE(tokens.ok());
  return *tokens;
}

std::vector<token_id> joined(std::vector<token_id> a, const std::vector<token_id>& b) {
  a.insert(a.end(), b.begin(), b.end());
  return a;
}

}  // namespace

TEST_CASE("text survives encoding and decoding") {
  for (std::string text : {"", "a", "hello world", "  two  spaces ", "äöü ß", "日本語テキスト", "mixed 😀 emoji😀😀 end",
                           "a\nb\tc", "\xf4\x8f\xbf\xbf"}) {
    CAPTURE(text);
    CHECK(*decode(tokens_of(text)) == text);
  }
  CHECK(*decode(tokens_of(std::string("nul\0byte", 8))) == std::string("nul\0byte", 8));
}

TEST_CASE("tokens hold whole code points of up to three bytes and start before each space") {
  CHECK(tokens_of("hello wo").size() == 3);  // "hel" "lo" " wo"
  CHECK(tokens_of("aé").size() == 1);
  CHECK(tokens_of("éé").size() == 2);
  CHECK(tokens_of("a😀b").size() == 3);
  CHECK(tokens_of("   ").size() == 3);
}

TEST_CASE("different texts have different ids") {
  CHECK(tokens_of("a") != tokens_of(std::string("\0a", 2)));
  CHECK(tokens_of("ab") != tokens_of(std::string("\0ab", 3)));
  CHECK(tokens_of("é") != tokens_of("è"));
  CHECK(tokens_of("😀") != tokens_of("😁"));
}

TEST_CASE("encoding text in two pieces changes nothing if the second starts with a space") {
  std::mt19937 random(7);
  const std::vector<std::string> parts = {"a", "bcd", " ", "é", "日", "😀", "\n", " xyz", "<|end|>"};
  for (int round = 0; round < 500; ++round) {
    std::string a;
    std::string b = " ";
    for (int i = 0; i < 6; ++i) a += parts[random() % parts.size()];
    for (int i = 0; i < 6; ++i) b += parts[random() % parts.size()];
    CAPTURE(a);
    CAPTURE(b);
    CHECK(tokens_of(a + b) == joined(tokens_of(a), tokens_of(b)));
  }
}

TEST_CASE("bytes that are not UTF-8 are refused with their place") {
  for (std::string bad : {"\x80", "\xc0\xaf", "\xed\xa0\x80", "\xf4\x90\x80\x80", "\xe2\x82", "\xff"}) {
    const auto tokens = encode("ok" + bad);
    REQUIRE_FALSE(tokens.ok());
    CHECK(tokens.failure().code == errc::invalid_request);
    CHECK(tokens.failure().detail == "not valid UTF-8 at byte 2");
  }
}

TEST_CASE("ids that no text has are refused") {
  for (token_id bad : {token_id{0x80}, token_id{0x100 + 0x8080}, eos_token + 1, ~token_id{0}}) {
    std::string text;
    CHECK_FALSE(append_text(bad, text));
    CHECK(text.empty());
    CHECK_FALSE(decode(std::vector{bad}).ok());
  }
  CHECK(*decode(std::vector{eos_token}) == "");
}
