#pragma once

#include <cstdint>
#include <span>
#include <string_view>
#include <vector>

#include "actors/simulator/tokenizer.hpp"

namespace infernex::simulator {

/// What one sequence answers, token by token.
class generator {
 public:
  /// Every token is a function of seed, model and all tokens before it, so a prompt continued by a part of
  /// its answer gets the rest of the same answer. Tokens are a space and two letters: text that turns into
  /// the same tokens again.
  static generator random(std::uint64_t seed, std::string_view model, std::span<const token_id> preceding,
                          double eos_probability);
  /// These tokens, then the end.
  static generator echo(std::vector<token_id> answer);

  /// The next token. Not the end unless `may_end`: an echo then starts over.
  token_id next(bool may_end);

 private:
  generator() = default;

  // Random: hash of all tokens so far.
  std::uint64_t state_ = 0;
  double eos_probability_ = 0;
  // Echo.
  bool echo_ = false;
  std::vector<token_id> answer_;
  std::size_t position_ = 0;
};

}  // namespace infernex::simulator
