#include "gateway/text_keys.hpp"

#include <algorithm>
#include <cstring>
#include <set>
#include <string>

#include <doctest/doctest.h>

#include "actors/engine/block_key.hpp"

using namespace infernex;
using namespace infernex::gateway;

namespace {

std::string prompt(std::size_t pieces, char last = 'x') {
  std::string text;
  for (std::size_t i = 0; i < pieces; ++i) text += std::string(text_piece_bytes, static_cast<char>('a' + i % 26));
  return text + last;
}

}  // namespace

TEST_CASE("equal beginnings have equal keys, and nothing else has") {
  const text_root root{"m", "", "", api::chat, {}};
  const auto four = text_keys(root, prompt(4), 100);
  REQUIRE(four.size() == 4);
  CHECK(std::set<std::uint64_t>(four.begin(), four.end()).size() == 4);
  const auto six = text_keys(root, prompt(6, 'y'), 100);
  REQUIRE(six.size() == 6);
  CHECK(std::equal(four.begin(), four.end(), six.begin()));
  auto other = prompt(4);
  other[text_piece_bytes + 3] = '!';
  const auto changed = text_keys(root, other, 100);
  CHECK(changed[0] == four[0]);
  for (std::size_t i = 1; i < 4; ++i) CHECK(changed[i] != four[i]);
}

TEST_CASE("pieces that may be cached: all that end before the last byte, up to the limit") {
  const text_root root{"m", "", "", api::chat, {}};
  const auto whole = prompt(3).substr(0, 3 * text_piece_bytes);
  CHECK(text_keys(root, whole, 100).size() == 2);
  CHECK(text_keys(root, whole + "x", 100).size() == 3);
  CHECK(text_keys(root, whole + "x", 2).size() == 2);
  CHECK(text_keys(root, "", 100).empty());
  CHECK(text_keys(root, "short", 100).empty());
}

TEST_CASE("model, adapter, salt, endpoint and what is rendered ahead tell texts apart; the fields' order does not") {
  const auto text = prompt(1);
  const raw_field tools{"tools", "[1]"};
  const raw_field style{"chat_template", "\"t\""};
  const raw_field both[] = {tools, style};
  const raw_field reversed[] = {style, tools};
  const raw_field other_tools[] = {{"tools", "[2]"}, style};
  std::set<std::uint64_t> seen;
  for (const text_root& root : {text_root{"m", "", "", api::chat, {}}, text_root{"n", "", "", api::chat, {}},
                                text_root{"m", "a", "", api::chat, {}}, text_root{"m", "", "a", api::chat, {}},
                                text_root{"m", "", "", api::completions, {}}, text_root{"m", "", "", api::chat, both},
                                text_root{"m", "", "", api::chat, other_tools}})
    seen.insert(text_keys(root, text, 1).at(0));
  CHECK(seen.size() == 7);
  CHECK(text_keys({"m", "", "", api::chat, both}, text, 1) == text_keys({"m", "", "", api::chat, reversed}, text, 1));
  // Keys of tokens that happen to be the same bytes.
  std::vector<std::uint32_t> tokens(text_piece_bytes / 4);
  std::memcpy(tokens.data(), text.data(), text_piece_bytes);
  seen.insert(engine::chain_keys({"m", "", "", router::text_block_tokens}, tokens, 1).at(0));
  CHECK(seen.size() == 8);
}
