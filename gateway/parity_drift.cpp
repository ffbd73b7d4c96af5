#include "gateway/parity_drift.hpp"

#include <algorithm>

namespace infernex::gateway {

parity_drift::state& parity_drift::of(std::string_view instance) {
  if (const auto known = by_instance_.find(instance); known != by_instance_.end()) {
    states_.splice(states_.begin(), states_, known->second);
    return states_.front();
  }
  if (states_.size() >= how_.max_instances && !states_.empty()) {
    by_instance_.erase(states_.back().instance);
    states_.pop_back();
    ++evicted_;
  }
  states_.emplace_front().instance = instance;
  by_instance_.emplace(states_.front().instance, states_.begin());
  return states_.front();
}

std::optional<parity_drift::notice> parity_drift::note(std::string_view instance, std::uint32_t predicted,
                                                       std::uint32_t reported) {
  auto& s = of(instance);
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
