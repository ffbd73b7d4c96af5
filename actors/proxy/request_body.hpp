#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "actors/proxy/json_scan.hpp"
#include "messages/result.hpp"

namespace infernex::proxy {

enum class api : std::uint8_t { chat, completions };

/// What a chat or completions body says that the protocols and a continuation must know.
struct request_facts {
  api kind = api::chat;
  bool stream = false;
  /// `stream_options.include_usage`.
  bool include_usage = false;
  /// `max_completion_tokens`, else `max_tokens`.
  std::optional<std::uint64_t> max_tokens;
  bool has_max_completion_tokens = false;
  std::optional<std::uint64_t> min_tokens;
  std::vector<std::string> stops;
  bool include_stop = false;
  /// Prompts of a completions request: an engine makes a request of its own of each.
  std::uint32_t prompts = 1;
  /// Whether the engine completes the last message rather than answer it.
  bool continues_last = false;
  /// Why a half-finished answer cannot be gone on with by another engine; empty: it can.
  std::string not_continuable;
};

/// Deepest nesting, and most prompts, that are accepted.
inline constexpr std::size_t max_json_depth = 64;
inline constexpr std::uint32_t max_prompts = 1024;

/// Checks all of the JSON of a client's body. Errors: invalid_request, with a line for the client.
result<request_facts> read_request(api kind, std::string_view body);

/// The body as a prefill engine gets it: one token, not streamed. `more`: members to set besides.
std::string prefill_body(const request_facts& facts, std::string_view body, std::span<const json_edit> more);
/// The body as a decode engine gets it. `more`: as above.
std::string decode_body(std::string_view body, std::span<const json_edit> more);
/// The body without what a client has no business to say: transfer parameters make an engine talk to the addresses
/// in them.
std::string plain_body(std::string_view body);

}  // namespace infernex::proxy
