#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "messages/result.hpp"

namespace infernex::simulator {

using token_id = std::uint32_t;

// A tokenizer without a vocabulary file. A token is up to three bytes of whole UTF-8 code points (or one
// code point of four), and a new token starts before every space. An id spells its token's bytes, so
// decoding is exact and needs no state. Cutting text before a space never changes the tokens:
// encode(a + b) == encode(a) + encode(b) whenever b starts with a space.

/// Ends an answer; has no text. Every id of text is smaller.
inline constexpr token_id eos_token = 0x0120'0000;

/// Errors: invalid_request, with the offset of the first byte that is not UTF-8.
result<std::vector<token_id>> encode(std::string_view text);

/// Appends the token's text; false if the id is none that text can have (the end token has none).
bool append_text(token_id token, std::string& text);

/// Errors: invalid_request, naming the id.
result<std::string> decode(std::span<const token_id> tokens);

}  // namespace infernex::simulator
