#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "actors/simulator/step_model.hpp"

namespace infernex::simulator {

/// Finds stop strings in text that arrives in pieces. Shows text as soon as it cannot be the start of one.
class stop_matcher {
 public:
  /// `keep`: the stop string itself is part of the answer.
  stop_matcher(std::vector<std::string> stops, bool keep);

  /// Takes the next piece, returns what may be shown. While `may_stop` is false, nothing counts as a stop.
  std::string push(std::string_view piece, bool may_stop);
  /// What was held back, at an end without a stop.
  std::string flush();
  /// The stop string that was found; nothing may be pushed after it.
  const std::optional<std::string>& matched() const { return matched_; }

 private:
  std::vector<std::string> stops_;
  bool keep_;
  std::string held_;
  std::optional<std::string> matched_;
};

/// One answer of a request as its client sees it.
class choice {
 public:
  struct options {
    std::vector<std::string> stops;
    bool keep_stop = false;
    std::uint32_t min_tokens = 0;
  };
  struct delta {
    std::string text;
    /// Set with the last one.
    std::optional<finish_reason> finish;
    /// The stop string that ended it.
    std::optional<std::string> stop_string;
  };

  explicit choice(options how) : stops_(std::move(how.stops), how.keep_stop), min_tokens_(how.min_tokens) {}

  /// If `finish` is set where the token's was not, the sequence is to be aborted: a stop string ended it.
  delta push(const token_output& output);
  /// The engine ends it for a reason of its own, which takes the place of a stop string.
  delta end(std::string reason);

  /// Tokens generated, those of a stop string and the end token included, as vLLM counts.
  std::uint32_t tokens() const { return tokens_; }

 private:
  stop_matcher stops_;
  std::uint32_t min_tokens_;
  std::uint32_t tokens_ = 0;
};

}  // namespace infernex::simulator
