#pragma once

#include <chrono>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "actors/engine/parity_chains.hpp"
#include "actors/engine/token_source.hpp"

namespace infernex::engine {

struct parity_settings {
  std::string model;
  /// Tokens a block as the engine's metrics say, where they do.
  std::optional<std::uint32_t> announced_block_size;
  std::optional<std::uint32_t> max_model_len;
  /// Whether the engine is followed by its KV events, and whether its answers should say cached_tokens.
  bool expects_events = true;
  bool expects_cached_tokens = true;
  /// For one answer, and from an answer to the events of its prompt.
  std::chrono::milliseconds answer_timeout{30'000};
  std::chrono::milliseconds events_timeout{5'000};
};

/// What the probe found; names are metrics labels.
enum class parity_fault : std::uint8_t {
  none,
  /// A question was not answered, or not as an engine answers. Nothing is known.
  not_probed,
  /// The blocks of the engine's events have another size than its metrics say.
  wrong_block_size,
  /// The engine published nothing of the prompt in time.
  no_events,
  /// The engine computed other tokens for a text than it, or its render server, said.
  tokenizer_differs,
  /// The same for a chat, though texts agree.
  template_differs,
  /// An answer's usage does not say how many tokens came from the cache.
  cached_tokens_missing,
  /// A prompt sent again found less in the cache than its events promise.
  cached_tokens_fewer,
  count_
};
std::string_view name(parity_fault fault);

struct parity_verdict {
  parity_fault fault = parity_fault::none;
  /// One line for people; empty if nothing is wrong.
  std::string problem;
};

/// Finds out, once an engine is ready (it may have requests by then), whether what the agent believes of it is true: it
/// has the tokens of a unique prompt told, as text and as chat, sends each to be answered with one token, compares the
/// tokens of the KV events they cause, and sends one again to see it come from the cache. Plain state: the caller sends
/// request() and says what comes back; time is passed in. Ends with the first fault.
class parity_probe {
 public:
  using time_point = std::chrono::steady_clock::time_point;

  /// `nonce` makes the prompt unlike that of any other probe.
  parity_probe(parity_settings settings, std::uint64_t nonce, time_point now);

  /// What to POST now; unset: wait for events, or it is over. Answer each once.
  std::optional<http_call> request() const;
  void on_answer(unsigned status, std::string_view body, time_point now);
  /// The request failed without an HTTP answer.
  void on_failure(std::string_view why, time_point now);
  /// Any blocks the engine has stored, of whichever prompt.
  void on_stored(const stored_blocks& blocks, time_point now);
  void on_tick(time_point now);
  /// When on_tick will have something to do.
  time_point deadline() const { return deadline_; }

  /// Unset until it is over.
  const std::optional<parity_verdict>& verdict() const { return verdict_; }

 private:
  enum class step : std::uint8_t { text_tokens, chat_tokens, text, text_events, chat, chat_events, again, over };

  struct expectation {
    plain_prompt prompt;
    token_endpoint endpoint = token_endpoint::render;
    std::optional<std::vector<std::uint32_t>> told;
    /// usage.prompt_tokens.
    std::optional<std::uint32_t> counted;

    bool count_differs() const { return told && counted && *counted != told->size(); }
  };

  bool asks_tokens() const { return step_ == step::text_tokens || step_ == step::chat_tokens; }
  expectation& of_step();
  const expectation& of_step() const;
  void enter(step next, time_point now);
  void end(parity_fault fault, std::string problem = {});
  void on_tokens(unsigned status, std::string_view body, time_point now);
  void on_generated(unsigned status, std::string_view body, time_point now);
  void check_events(time_point now);
  void events_missing();
  void end_differing(const std::optional<parity_chains::difference>& first);
  bool check_block_size();
  void end_sound();
  void check_cached(std::optional<std::uint32_t> cached);

  parity_settings settings_;
  step step_ = step::text_tokens;
  expectation text_;
  expectation chat_;
  parity_chains chains_;
  time_point deadline_;
  std::optional<parity_verdict> verdict_;
};

}  // namespace infernex::engine
