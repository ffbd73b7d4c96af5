#include "gateway/attempt.hpp"

#include <algorithm>

namespace infernex::gateway {

engine_backoff::engine_backoff(std::chrono::milliseconds first, std::chrono::milliseconds most, std::size_t max_entries)
    : first_(first), most_(most), max_entries_(max_entries) {}

void engine_backoff::failed(std::string_view instance, clock_point now) {
  auto found = entries_.find(instance);
  if (found == entries_.end()) {
    if (entries_.size() >= max_entries_) {
      entries_.erase(std::min_element(entries_.begin(), entries_.end(),
                                      [](const auto& a, const auto& b) { return a.second.until < b.second.until; }));
    }
    found = entries_.emplace(std::string(instance), entry{now, {}}).first;
  }
  auto& e = found->second;
  // Requests that fail together are one failure of the engine, not many.
  if (e.pause.count() != 0 && now < e.until) return;
  e.pause = e.pause.count() == 0 ? first_ : std::min(e.pause * 2, most_);
  e.until = now + e.pause;
}

void engine_backoff::succeeded(std::string_view instance) {
  if (entries_.empty()) return;
  if (const auto found = entries_.find(instance); found != entries_.end()) entries_.erase(found);
}

bool engine_backoff::out(std::string_view instance, clock_point now) const {
  if (entries_.empty()) return false;
  const auto found = entries_.find(instance);
  return found != entries_.end() && now < found->second.until;
}

bool worth_retry(errc how) {
  switch (how) {
    case errc::unreachable:
    case errc::connection_lost:
    case errc::malformed_input:
      return true;
    default:
      return false;
  }
}

bool worth_retry_status(unsigned status) { return status == 502 || status == 503 || status == 504; }

void attempts::offer(std::vector<candidate> ranked) { ranked_ = std::move(ranked); }

std::optional<candidate> attempts::next(const engine_backoff& backoff, clock_point now) {
  if (exhausted()) return std::nullopt;
  std::erase_if(ranked_, [this](const candidate& c) {
    return std::find(failed_.begin(), failed_.end(), c.instance) != failed_.end();
  });
  if (ranked_.empty()) return std::nullopt;
  auto chosen =
      std::find_if(ranked_.begin(), ranked_.end(), [&](const candidate& c) { return !backoff.out(c.instance, now); });
  if (chosen == ranked_.end()) chosen = ranked_.begin();
  auto result = std::move(*chosen);
  ranked_.erase(chosen);
  present_ = result.instance;
  ++count_;
  return result;
}

void attempts::failed(std::string_view why) {
  failed_.push_back(present_);
  if (!story_.empty()) story_ += "; ";
  story_ += present_;
  story_ += ' ';
  story_ += why;
}

std::vector<std::string> exclusions(const std::vector<std::string>& failed, const engine_backoff& backoff,
                                    const std::vector<std::string_view>& ready, clock_point now) {
  auto out = failed;
  if (backoff.empty()) return out;
  const auto has_failed = [&](std::string_view instance) {
    return std::find(failed.begin(), failed.end(), instance) != failed.end();
  };
  std::size_t left = 0;
  for (const auto instance : ready) {
    if (has_failed(instance)) continue;
    if (backoff.out(instance, now)) {
      out.emplace_back(instance);
    } else {
      ++left;
    }
  }
  return left > 0 ? out : failed;
}

}  // namespace infernex::gateway
