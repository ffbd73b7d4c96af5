#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "actors/proxy/request_body.hpp"

namespace infernex::proxy {

/// What one event of a decode engine's stream, or its whole answer, was to the client's answer.
struct seen {
  /// Generated text, a tool call, or an end has come.
  bool output = false;
  /// The engine gives the request back; what it has generated stands.
  bool recomputed = false;
  /// The engine says that it failed.
  std::string failure;
  /// The answer is whole: nothing of this engine is to be passed on any more.
  bool complete = false;
};

/// One client's answer, put together from the streams (or answers) of one decode engine after another: role and ids
/// come once, usage is that of an undisturbed run, the token budget goes on, a stop string that spans a seam stops.
class continuation {
 public:
  explicit continuation(const request_facts& facts) : facts_(facts) {}

  /// The prefill engine's answer: its usage knows what was cached. Only the first one's is that of an undisturbed run.
  void note_prefill(std::string_view answer);
  /// Another engine's stream begins; it was sent next_body(). What waits is appended to `out`.
  void next_engine(std::string& out);

  /// Reads one event and appends to `out` what the client gets of it.
  seen take_event(std::string_view event, std::string& out);
  /// Reads a whole answer; the client's is appended to `out`, unless it is to be continued.
  seen take_whole(std::string_view answer, std::string& out);
  /// Whether the engine's stream has come to its regular end.
  bool finished() const { return finished_; }

  /// The client has had generated output, so that starting anew would repeat it.
  bool begun() const { return output_; }
  /// Why the answer cannot be gone on with elsewhere; empty: it can.
  std::string_view obstacle() const;
  /// The client's body with what was generated so far. Nothing: the body does not allow it.
  std::optional<std::string> next_body(std::string_view original) const;
  /// No token is left to generate; closing() ends the answer.
  bool spent() const;
  std::string closing();
  const std::string& generated() const { return generated_; }
  std::uint64_t tokens() const { return tokens_before_ + tokens_now_; }

 private:
  struct event_parts;
  std::string fixed_usage(std::string_view usage) const;
  bool knows_better_usage() const { return tokens_before_ > 0 || !cached_details_.empty(); }
  /// Event of an engine after the first as one of the first. Nothing: the client has it already.
  std::optional<std::string> as_continued(const event_parts& parts) const;
  std::string choice_event(std::string_view text, std::string_view finish, std::string_view stop) const;
  std::string ending(std::string_view text, std::string_view finish, std::string_view stop) const;
  void note_text(std::string_view text);
  /// The stop string that began before the seam and ends in `text`; `length`: how much of `text` belongs to it.
  const std::string* stop_over_seam(std::string_view text, std::size_t& length) const;
  /// More text could still complete such a stop string.
  bool seam_open(std::string_view text) const;
  void start_seam();

  request_facts facts_;
  std::string generated_;
  bool output_ = false;
  bool other_output_ = false;
  bool finished_ = false;
  bool role_sent_ = false;
  std::uint64_t tokens_before_ = 0;
  std::uint64_t tokens_now_ = 0;
  unsigned engine_ = 1;

  // Of the first engine's first event, as JSON.
  std::string id_;
  std::string created_;
  std::string model_;
  // Of the first prefill's answer.
  std::optional<std::uint64_t> prompt_tokens_;
  bool prefill_known_ = false;
  std::string cached_details_;

  /// The end of what was generated before the seam, as far as a stop string could begin there; the text behind it,
  /// and events that wait until it is sure that none does.
  std::string tail_;
  std::string behind_;
  std::string waiting_;
};

}  // namespace infernex::proxy
