#include "gateway/parity_drift.hpp"

#include <algorithm>

namespace infernex::gateway {

std::optional<parity_drift::notice> parity_drift::note(std::string_view instance, std::uint32_t predicted,
                                                       std::uint32_t reported) {
  auto found = instances_.find(instance);
  if (found == instances_.end()) {
    if (instances_.size() >= how_.max_instances) {
      ++ignored_;
      return std::nullopt;
    }
    found = instances_.emplace(std::string(instance), state{}).first;
  }
  auto& s = found->second;
  const auto [less, more] = std::minmax(predicted, reported);
  s.difference = how_.decay * s.difference + (more - less);
  s.tokens = how_.decay * s.tokens + more;
  const auto error = s.tokens < how_.least_tokens ? 0.0 : s.difference / s.tokens;
  const bool against = s.drifting ? error < how_.threshold / 2 : error > how_.threshold;
  if (!against) {
    s.run = {};
    return std::nullopt;
  }
  s.run.predicted += predicted;
  s.run.reported += reported;
  if (++s.run.requests < how_.requests) return std::nullopt;
  s.drifting = !s.drifting;
  auto told = s.run;
  told.drifting = s.drifting;
  told.error = error;
  s.run = {};
  return told;
}

}  // namespace infernex::gateway
