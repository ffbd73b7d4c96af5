#include "gateway/presence_list.hpp"

#include <xxhash.h>

namespace infernex::gateway {

bool presence_list::on_announce(std::string_view name, std::string_view word, std::uint64_t epoch, clock_point now) {
  if (name.empty()) return false;
  const auto known = known_.find(name);
  if (known == known_.end()) {
    if (known_.size() >= bounds_.most) {
      ++refused_;
      return false;
    }
    known_.emplace(name, entry{std::string(word), epoch, now});
    return true;
  }
  auto& one = known->second;
  if (epoch < one.epoch) return false;
  const bool changed = one.word != word;
  one = {changed ? std::string(word) : std::move(one.word), epoch, now};
  return changed;
}

bool presence_list::on_leave(std::string_view name, std::uint64_t epoch) {
  const auto known = known_.find(name);
  if (known == known_.end() || epoch < known->second.epoch) return false;
  known_.erase(known);
  return true;
}

bool presence_list::expire(clock_point now) {
  return std::erase_if(known_, [&](const auto& one) { return now - one.second.heard > bounds_.silence; }) != 0;
}

std::vector<std::string> presence_list::names() const {
  std::vector<std::string> all;
  all.reserve(known_.size());
  for (const auto& [name, since] : known_) all.push_back(name);
  return all;
}

std::map<std::string, std::string, std::less<>> presence_list::words() const {
  std::map<std::string, std::string, std::less<>> all;
  for (const auto& [name, one] : known_) all.emplace(name, one.word);
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
