#include "gateway/life_inbox.hpp"

#include <map>
#include <utility>

namespace infernex::gateway {

bool life_inbox::put(life_events&& events) {
  const std::lock_guard lock(guard_);
  for (auto& change : events.changes) {
    if (waiting_.changes.size() >= bounds_.max_changes) sum_up();
    waiting_.changes.push_back(std::move(change));
  }
  for (auto& finish : events.finished) {
    if (waiting_.finished.size() < bounds_.max_finished)
      waiting_.finished.push_back(std::move(finish));
    else
      ++dropped_;
  }
  for (auto& prompt : events.routed) {
    if (keys_ + prompt.keys.size() > bounds_.max_keys) {
      ++dropped_;
      continue;
    }
    keys_ += prompt.keys.size();
    waiting_.routed.push_back(std::move(prompt));
  }
  return !std::exchange(woken_, true);
}

void life_inbox::sum_up() {
  std::map<std::pair<std::string, std::string>, life_change> sums;
  for (auto& change : waiting_.changes) {
    auto& sum = sums[{change.model, change.instance}];
    sum.requests += change.requests;
    sum.prefill_tokens += change.prefill_tokens;
    sum.blocks += change.blocks;
    if (!change.started.empty()) ++dropped_;
  }
  waiting_.changes.clear();
  for (auto& [name, sum] : sums) {
    sum.model = name.first;
    sum.instance = name.second;
    waiting_.changes.push_back(std::move(sum));
  }
}

life_events life_inbox::take() {
  const std::lock_guard lock(guard_);
  woken_ = false;
  keys_ = 0;
  return std::exchange(waiting_, {});
}

std::uint64_t life_inbox::dropped() const {
  const std::lock_guard lock(guard_);
  return dropped_;
}

}  // namespace infernex::gateway
