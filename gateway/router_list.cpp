#include "gateway/router_list.hpp"

#include <xxhash.h>

namespace infernex::gateway {

bool router_list::on_announce(std::string_view router, std::uint64_t epoch, bool leaving, clock_point now) {
  if (router.empty()) return false;
  const auto known = known_.find(router);
  if (known == known_.end()) {
    if (leaving) return false;
    if (known_.size() >= bounds_.most) {
      ++refused_;
      return false;
    }
    known_.emplace(router, entry{epoch, now});
    return true;
  }
  if (epoch < known->second.epoch) return false;
  if (leaving) {
    known_.erase(known);
    return true;
  }
  known->second = {epoch, now};
  return false;
}

bool router_list::expire(clock_point now) {
  return std::erase_if(known_, [&](const auto& one) { return now - one.second.heard > bounds_.silence; }) != 0;
}

std::vector<std::string> router_list::names() const {
  std::vector<std::string> all;
  all.reserve(known_.size());
  for (const auto& [name, since] : known_) all.push_back(name);
  return all;
}

const std::string* router_for(std::span<const std::string> routers, std::string_view model, std::string_view without) {
  const std::string* best = nullptr;
  XXH64_hash_t most = 0;
  const auto of_model = XXH3_64bits(model.data(), model.size());
  for (const auto& router : routers) {
    if (router == without) continue;
    const auto weight = XXH3_64bits_withSeed(router.data(), router.size(), of_model);
    if (best && weight <= most) continue;
    best = &router;
    most = weight;
  }
  return best;
}

}  // namespace infernex::gateway
