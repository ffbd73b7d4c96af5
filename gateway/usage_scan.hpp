#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

namespace infernex::gateway {

/// OpenAI's `usage`, as far as the engine sent it.
struct usage {
  std::optional<std::uint32_t> prompt_tokens;
  std::optional<std::uint32_t> completion_tokens;
  /// `prompt_tokens_details.cached_tokens`.
  std::optional<std::uint32_t> cached_tokens;
};

/// The `usage` object of an answer or of one stream event (JSON without `data:`). All empty if there is none
/// or the text is not JSON.
usage find_usage(std::string_view json);

/// Watches a stream of server-sent events on its way to the client. It never changes a byte, but releases
/// whole events only, so that a stream that breaks can still end in a well-formed error event. An unfinished
/// event is held back up to a bound; beyond it, bytes pass as they come.
class stream_scan {
 public:
  explicit stream_scan(std::size_t max_held = 1 << 20) : max_held_(max_held) {}

  /// The bytes to pass on now (maybe none): `piece` itself where no event is cut, else our own buffer.
  /// Valid until the next call, and not longer than `piece`.
  std::string_view feed(std::string_view piece);
  /// What is still held back when the engine has ended its answer.
  std::string_view rest() const { return held_; }

  /// An event that carries generated text, a tool call, or an end has passed.
  bool first_token() const { return first_token_; }
  /// `data: [DONE]` has passed.
  bool done() const { return done_; }
  /// From the last event that had a usage object.
  usage last_usage() const;

 private:
  void look(std::string_view events);

  std::size_t max_held_;
  std::string held_;
  /// Backs the result of feed() where pieces had to be joined.
  std::string joined_;
  std::string usage_event_;
  bool first_token_ = false;
  bool done_ = false;
};

}  // namespace infernex::gateway
