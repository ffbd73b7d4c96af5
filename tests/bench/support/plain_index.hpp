#pragma once

#include <cstdint>
#include <span>
#include <unordered_map>
#include <unordered_set>
#include <vector>

namespace infernex::bench {

/// The index as one writes it first: the baseline. One thread, no bound.
class plain_index {
 public:
  void add(std::uint32_t engine, std::span<const std::uint64_t> keys) {
    for (const auto k : keys) holders_[k].insert(engine);
  }
  void remove(std::uint32_t engine, std::span<const std::uint64_t> keys) {
    for (const auto k : keys) {
      const auto at = holders_.find(k);
      if (at == holders_.end()) continue;
      at->second.erase(engine);
      if (at->second.empty()) holders_.erase(at);
    }
  }
  struct match {
    std::uint32_t engine;
    std::uint32_t blocks;
  };
  const std::vector<match>& lookup(std::span<const std::uint64_t> chain) {
    found_.clear();
    if (chain.empty()) return found_;
    const auto first = holders_.find(chain[0]);
    if (first == holders_.end()) return found_;
    std::vector<std::uint32_t> left(first->second.begin(), first->second.end());
    std::uint32_t depth = 1;
    for (; depth < chain.size() && !left.empty(); ++depth) {
      const auto next = holders_.find(chain[depth]);
      std::erase_if(left, [&](std::uint32_t engine) {
        if (next != holders_.end() && next->second.contains(engine)) return false;
        found_.push_back({engine, depth});
        return true;
      });
    }
    for (const auto engine : left) found_.push_back({engine, depth});
    return found_;
  }
  std::uint64_t memberships() const {
    std::uint64_t sum = 0;
    for (const auto& [key, engines] : holders_) sum += engines.size();
    return sum;
  }

 private:
  std::unordered_map<std::uint64_t, std::unordered_set<std::uint32_t>> holders_;
  std::vector<match> found_;
};

}  // namespace infernex::bench
