#include "actors/runtime/http/pool.hpp"

namespace infernex::http {

std::shared_ptr<upstream> upstream_pool::take(const origin& to) {
  const auto found = idle_.find(to);
  if (found == idle_.end()) return nullptr;
  auto& entries = found->second;
  const auto now = steady::now();
  while (!entries.empty()) {
    entry last = std::move(entries.back());
    entries.pop_back();
    if (now - last.since < settings_.idle_timeout && last.connection->usable()) return std::move(last.connection);
  }
  idle_.erase(found);
  return nullptr;
}

void upstream_pool::give_back(const origin& to, std::shared_ptr<upstream> idle) {
  if (!sweeper_ || idle->closed() || settings_.max_idle_per_origin == 0) return;
  idle->expect_nothing();
  auto& entries = idle_[to];
  // The oldest makes room: it is the likeliest to be closed by the other side soon.
  if (entries.size() >= settings_.max_idle_per_origin) entries.erase(entries.begin());
  entries.push_back({std::move(idle), steady::now()});
  if (!sweeping_) sweep();
}

void upstream_pool::sweep() {
  sweeping_ = true;
  sweeper_->expires_after(settings_.idle_timeout);
  sweeper_->async_wait([this](const error_code& stopped) {
    if (stopped) return;
    const auto now = steady::now();
    for (auto& [to, entries] : idle_)
      std::erase_if(entries,
                    [&](const entry& e) { return now - e.since >= settings_.idle_timeout || !e.connection->usable(); });
    std::erase_if(idle_, [](const auto& item) { return item.second.empty(); });
    sweeping_ = false;
    if (!idle_.empty()) sweep();
  });
}

void upstream_pool::close() {
  sweeper_.reset();
  idle_.clear();
}

}  // namespace infernex::http
