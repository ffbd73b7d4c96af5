#include "actors/proxy/bootstrap_memory.hpp"

#include <algorithm>

namespace infernex::proxy {

std::string bootstrap_memory::find(const std::string& address, std::string_view life, point now) {
  const auto known = known_.find(address);
  if (known == known_.end()) return {};
  if (known->second.life == life && now - known->second.since < keep_) return known->second.answer;
  known_.erase(known);
  return {};
}

void bootstrap_memory::put(const std::string& address, std::string life, std::string answer, point now) {
  if (known_.size() >= max_engines_ && !known_.count(address)) {
    known_.erase(std::min_element(known_.begin(), known_.end(),
                                  [](const auto& a, const auto& b) { return a.second.since < b.second.since; }));
  }
  known_.insert_or_assign(address, entry{std::move(life), std::move(answer), now});
}

}  // namespace infernex::proxy
