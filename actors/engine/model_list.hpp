#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "messages/result.hpp"

namespace infernex::engine {

/// What an engine's `/v1/models` says.
struct model_list {
  /// The base model's served name.
  std::string model;
  /// Longest context in tokens (a vLLM extension).
  std::optional<std::uint32_t> max_model_len;
  /// LoRA adapters: entries that name a parent.
  std::vector<std::string> adapters;

  friend bool operator==(const model_list&, const model_list&) = default;
};

/// `wanted`: the model to look for; empty takes the first base model. Errors: malformed_input (not the
/// answer of an OpenAI endpoint), not_found (no base model, or not the wanted one).
result<model_list> read_model_list(std::string_view body, std::string_view wanted);

}  // namespace infernex::engine
