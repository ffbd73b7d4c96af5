#include "actors/router/request_terms.hpp"

#include <algorithm>
#include <charconv>

namespace infernex::router {

namespace {

constexpr std::int64_t longest_ttft_ms = 86'400'000;

template <class T>
std::optional<T> number_of(std::string_view text) {
  T value{};
  const auto [end, problem] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (problem != std::errc{} || end != text.data() + text.size()) return std::nullopt;
  return value;
}

std::int32_t priority_of(std::string_view objective, const queue_settings& how) {
  const auto named = how.objectives.find(objective);
  if (named != how.objectives.end()) return named->second;
  return std::clamp(number_of<std::int32_t>(objective).value_or(0), -most_priority, most_priority);
}

}  // namespace

request_terms terms_of(std::span<const std::pair<std::string_view, std::string_view>> headers,
                       const queue_settings& how) {
  const auto either = [&](std::string_view name, std::string_view older) {
    std::string_view found;
    for (const auto& [key, value] : headers) {
      if (key == name) return value;
      if (key == older) found = value;
    }
    return found;
  };
  request_terms out;
  if (const auto tenant = either("x-llm-d-inference-fairness-id", "x-gateway-inference-fairness-id"); !tenant.empty())
    out.tenant = tenant;
  if (const auto objective = either("x-llm-d-inference-objective", "x-gateway-inference-objective"); !objective.empty())
    out.priority = priority_of(objective, how);
  if (const auto ms = number_of<std::int64_t>(either("x-llm-d-slo-ttft-ms", "x-slo-ttft-ms")); ms && *ms > 0)
    out.ttft = std::chrono::milliseconds(std::min(*ms, longest_ttft_ms));
  return out;
}

std::uint64_t cost_of(const placement& request) {
  constexpr std::uint32_t usual_answer = 256;  // of which nobody said how long it may be
  return request.tokens() + request.max_tokens.value_or(usual_answer);
}

}  // namespace infernex::router
