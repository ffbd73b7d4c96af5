#include "actors/router/waiting_line.hpp"

#include <algorithm>

namespace infernex::router {

waiting_line::admission waiting_line::admit(request what, clock_point now) {
  admission out;
  if (entries_.size() >= bounds_.max_requests) {
    out.evicted = victim_for(what);
    if (!out.evicted) return out;
    remove(*out.evicted);
  }
  const auto number = next_++;
  auto& in = lines_[what.model][what.priority];
  auto& mine = in.tenants[what.tenant];
  if (mine.waiting.empty()) {
    std::optional<std::uint64_t> least;
    for (const auto& [name, other] : in.tenants)
      if (!other.waiting.empty()) least = std::min(least.value_or(other.served), other.served);
    if (least) mine.served = std::max(mine.served, *least);
  }
  entry e{std::move(what), clock_point::max(), now + bounds_.max_wait};
  if (e.what.due) e.due = *e.what.due;
  if (e.what.until) e.until = std::min(e.until, *e.what.until);
  mine.waiting.insert({e.due, number});
  mine.by_arrival.insert(number);
  ++in.waiting;
  by_end_.insert({e.until, number});
  entries_.emplace(number, std::move(e));
  out.taken = number;
  return out;
}

/// Over all models: the bound is the process's. The newcomer himself is nothing.
std::optional<waiting_line::ticket> waiting_line::victim_for(const request& newcomer) const {
  auto lowest = newcomer.priority;
  for (const auto& [model, line] : lines_) lowest = std::min(lowest, line.rbegin()->first);
  std::map<std::string_view, std::pair<std::size_t, ticket>> waiting;  // how many, and the newest
  for (const auto& [model, line] : lines_) {
    const auto in = line.find(lowest);
    if (in == line.end()) continue;
    for (const auto& [name, of] : in->second.tenants) {
      if (of.waiting.empty()) continue;
      auto& [count, newest] = waiting[name];
      count += of.waiting.size();
      newest = std::max(newest, *of.by_arrival.rbegin());
    }
  }
  // Equal numbers: the newcomer's tenant makes room, for it comes last.
  std::size_t most = 0;
  if (newcomer.priority == lowest) {
    const auto own = waiting.find(newcomer.tenant);
    most = 1 + (own == waiting.end() ? 0 : own->second.first);
  }
  std::optional<ticket> out;
  for (const auto& [name, of] : waiting)
    if (of.first > most) {
      most = of.first;
      out = of.second;
    }
  return out;
}

std::optional<waiting_line::ticket> waiting_line::next(std::string_view model,
                                                       const std::function<bool(ticket)>& can_go) {
  const auto line = lines_.find(model);
  if (line == lines_.end()) return std::nullopt;
  std::size_t looks = 0;
  for (auto& [priority, in] : line->second) {
    std::vector<flow*> turn;
    for (auto& [name, of] : in.tenants)
      if (!of.waiting.empty()) turn.push_back(&of);
    std::stable_sort(turn.begin(), turn.end(), [](const flow* a, const flow* b) { return a->served < b->served; });
    for (auto* of : turn)
      for (const auto& one : of->waiting) {
        if (looks++ == bounds_.max_looks) return std::nullopt;
        if (!can_go(one.number)) continue;
        const auto found = one.number;
        of->served += std::max<std::uint64_t>(1, entries_.at(found).what.cost);
        remove(found);
        return found;
      }
  }
  return std::nullopt;
}

std::vector<waiting_line::ticket> waiting_line::expire(clock_point now) {
  std::vector<ticket> out;
  while (!by_end_.empty() && by_end_.begin()->first <= now) {
    out.push_back(by_end_.begin()->second);
    remove(out.back());
  }
  return out;
}

bool waiting_line::leave(ticket who) {
  if (!entries_.contains(who)) return false;
  remove(who);
  return true;
}

std::vector<std::string> waiting_line::models() const {
  std::vector<std::string> names;
  for (const auto& [model, line] : lines_) names.push_back(model);
  return names;
}

std::size_t waiting_line::position(ticket who) const {
  const auto it = entries_.find(who);
  if (it == entries_.end()) return 0;
  const auto& e = it->second;
  std::size_t before = 0;
  for (const auto& [priority, in] : lines_.find(e.what.model)->second) {
    if (priority > e.what.priority) {
      before += in.waiting;
      continue;
    }
    const auto& own = in.tenants.find(e.what.tenant)->second.waiting;
    const auto ahead = static_cast<std::size_t>(std::distance(own.begin(), own.find({e.due, who})));
    before += ahead;
    for (const auto& [name, of] : in.tenants)
      if (&of.waiting != &own) before += std::min(of.waiting.size(), ahead + 1);
    break;
  }
  return before + 1;
}

void waiting_line::remove(ticket who) {
  const auto it = entries_.find(who);
  const auto& e = it->second;
  const auto line = lines_.find(e.what.model);
  const auto in = line->second.find(e.what.priority);
  auto& mine = in->second.tenants.find(e.what.tenant)->second;
  mine.waiting.erase({e.due, who});
  mine.by_arrival.erase(who);
  if (--in->second.waiting == 0) {
    line->second.erase(in);
    if (line->second.empty()) lines_.erase(line);
  } else if (mine.waiting.empty()) {
    forget_absent(in->second);
  }
  by_end_.erase({e.until, who});
  entries_.erase(it);
}

/// Those served least: they would be lifted the most when they come back anyway.
void waiting_line::forget_absent(band& of) const {
  std::size_t absent = 0;
  auto least = of.tenants.end();
  for (auto it = of.tenants.begin(); it != of.tenants.end(); ++it) {
    if (!it->second.waiting.empty()) continue;
    ++absent;
    if (least == of.tenants.end() || it->second.served < least->second.served) least = it;
  }
  if (absent > bounds_.max_absent_tenants) of.tenants.erase(least);
}

}  // namespace infernex::router
