#pragma once

#include <chrono>
#include <cstdint>
#include <map>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "actors/engine/token_source.hpp"
#include "gateway/openai_request.hpp"
#include "gateway/settings.hpp"

namespace infernex::gateway {

using clock_point = std::chrono::steady_clock::time_point;

std::string_view name(token_step step);

/// What one engine was asked for tokens.
struct token_call {
  std::string path;
  /// Empty: send the client's own body.
  std::string body;
  std::chrono::milliseconds timeout;
};

/// The call that step `step` (render or tokenize) makes for a request. Shapes: vLLM's
/// `/v1/chat/completions/render`, `/v1/completions/render` (the client's own body) and `/tokenize`.
token_call make_token_call(token_step step, api kind, const openai_request& request, const token_settings& how);

using engine::read_token_answer;
using engine::token_answer;
using engine::token_verdict;

/// Which endpoints of which engines are not to be asked for a while. Bounded: full, it forgets all.
class token_endpoints {
 public:
  explicit token_endpoints(std::size_t max_entries = 4096) : max_entries_(max_entries) {}

  bool usable(std::string_view instance, token_step step, clock_point now) const;
  void avoid(std::string_view instance, token_step step, clock_point until);

 private:
  std::size_t max_entries_;
  std::map<std::pair<std::string, token_step>, clock_point> until_;
};

/// Position in the chain of the next step worth trying on this engine, from `from` on: `chain.size()` if
/// none is left. `text` is always worth trying.
std::size_t next_step(const std::vector<token_step>& chain, std::size_t from, std::string_view instance,
                      const token_endpoints& endpoints, clock_point now);

}  // namespace infernex::gateway
