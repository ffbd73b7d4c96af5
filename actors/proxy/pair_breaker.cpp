#include "actors/proxy/pair_breaker.hpp"

#include <algorithm>

namespace infernex::proxy {

bool pair_breaker::worked(const pair_name& pair) { return pairs_.erase(pair) != 0; }

void pair_breaker::open(entry& e, clock_point now) {
  e.pause = e.pause.count() == 0 ? limits_.first_pause : std::min(e.pause * 2, limits_.most_pause);
  e.until = now + e.pause;
  if (e.state != fb::Breaker::Open) ++opened_;
  e.state = fb::Breaker::Open;
}

bool pair_breaker::failed(const pair_name& pair, clock_point now) {
  auto found = pairs_.find(pair);
  if (found == pairs_.end()) {
    if (pairs_.size() >= limits_.max_pairs) {
      pairs_.erase(std::min_element(pairs_.begin(), pairs_.end(),
                                    [](const auto& a, const auto& b) { return a.second.touched < b.second.touched; }));
    }
    found = pairs_.emplace(pair, entry{}).first;
  }
  auto& e = found->second;
  ++e.failures;
  e.touched = now;
  // What was under way when it opened says nothing new.
  if (e.state == fb::Breaker::Open) return false;
  if (e.state == fb::Breaker::Closed && e.failures < limits_.failures) return false;
  open(e, now);
  return true;
}

bool pair_breaker::on_tick(clock_point now) {
  bool changed = false;
  for (auto& [name, e] : pairs_) {
    if (e.state != fb::Breaker::Open || now < e.until) continue;
    e.state = fb::Breaker::HalfOpen;
    changed = true;
  }
  return changed;
}

void pair_breaker::forget(const std::string& address) {
  std::erase_if(pairs_, [&](const auto& p) { return p.first.first == address || p.first.second == address; });
}

}  // namespace infernex::proxy
