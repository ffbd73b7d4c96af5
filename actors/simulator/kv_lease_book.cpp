#include "actors/simulator/kv_lease_book.hpp"

#include <algorithm>
#include <utility>

namespace infernex::simulator {

std::optional<kv_lease_book::lease> kv_lease_book::offer(std::string key, lease fresh) {
  const auto [at, added] = leases_.try_emplace(std::move(key));
  auto before = std::exchange(at->second, std::move(fresh));
  if (added) return std::nullopt;
  return before;
}

const kv_lease_book::lease* kv_lease_book::find(std::string_view key) const {
  const auto found = leases_.find(key);
  return found == leases_.end() ? nullptr : &found->second;
}

kv_lease_book::outcome kv_lease_book::begin_read(std::string_view key, const std::vector<std::uint32_t>& named) {
  const auto found = leases_.find(key);
  if (found == leases_.end()) return outcome::unknown;
  auto& one = found->second;
  if (one.reading) return outcome::busy;
  for (const auto id : named) {
    if (std::find(one.blocks.begin(), one.blocks.end(), id) == one.blocks.end()) return outcome::no_such_block;
  }
  one.reading = true;
  return outcome::begun;
}

std::optional<kv_lease_book::lease> kv_lease_book::end(std::string_view key) {
  const auto found = leases_.find(key);
  if (found == leases_.end()) return std::nullopt;
  auto ended = std::move(found->second);
  leases_.erase(found);
  return ended;
}

std::vector<kv_lease_book::lease> kv_lease_book::expire(time_point now) {
  std::vector<lease> ended;
  for (auto at = leases_.begin(); at != leases_.end();) {
    if (at->second.reading || at->second.ends > now) {
      ++at;
      continue;
    }
    ended.push_back(std::move(at->second));
    at = leases_.erase(at);
  }
  return ended;
}

std::optional<kv_lease_book::time_point> kv_lease_book::next_end() const {
  std::optional<time_point> next;
  for (const auto& [key, one] : leases_) {
    if (!one.reading && (!next || one.ends < *next)) next = one.ends;
  }
  return next;
}

}  // namespace infernex::simulator
