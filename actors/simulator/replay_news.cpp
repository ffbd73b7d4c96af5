#include "actors/simulator/replay_news.hpp"

#include <algorithm>
#include <cmath>

namespace infernex::simulator {

std::string instance_name(std::uint32_t engine) {
  auto digits = std::to_string(engine);
  return "engine-" + std::string(digits.size() < 5 ? 5 - digits.size() : 0, '0') + digits;
}

replay_news::replay_news(replay_delays delays, std::uint32_t engines, std::uint32_t gateways)
    : delays_(delays), index_({std::max(1U, engines), 4ULL << 30}), up_(engines), life_(std::max(1U, gateways)) {
  for (std::uint32_t i = 0; i < engines; ++i) names_.push_back(instance_name(i));
}

void replay_news::tell_to(std::vector<std::unique_ptr<replay_policy>>& routers) {
  routers_ = routers;
  index_used_ = std::any_of(routers.begin(), routers.end(), [](const auto& one) { return one->uses_index(); });
}

void replay_news::engine_up(std::uint32_t engine, double now_ms) {
  deliver(now_ms);
  up_[engine] = true;
  index_.add_instance(names_[engine]);
  for (const auto& router : routers_) router->engine_up(engine, now_ms);
}

void replay_news::engine_down(std::uint32_t engine, double now_ms) {
  deliver(now_ms);
  up_[engine] = false;
  index_.remove_instance(names_[engine]);
  for (const auto& router : routers_) router->engine_down(engine, now_ms);
}

void replay_news::load_reported(std::uint32_t engine, const engine_load& load, double now_ms) {
  deliver(now_ms);
  for (const auto& router : routers_) router->load_reported(engine, load, now_ms);
}

void replay_news::blocks_changed(std::uint32_t engine, std::span<const cache_change> changes, double now_ms) {
  if (!index_used_) return;
  // As the agent sees it: a set of names, whatever the number of copies.
  for (const auto& change : changes)
    if (change.sole)
      kv_.push_back({now_ms + delays_.kv_event_ms, change.name, engine, change.what == cache_change::kind::stored});
}

void replay_news::progress(step what, const replay_progress& of, std::uint32_t gateway, std::uint32_t router,
                           double now_ms) {
  if (what == step::placed && routers_.size() == 1) return;
  const auto interval = delays_.life_interval_ms;
  auto due = now_ms;
  if (interval > 0) {
    const auto phase = interval * gateway / static_cast<double>(life_.size());
    due = phase + std::ceil((now_ms - phase) / interval) * interval;
  }
  life_[gateway].push_back({due, what, router, of});
}

void replay_news::tell(const life_fact& fact) {
  for (std::uint32_t i = 0; i < routers_.size(); ++i) {
    if (fact.what == step::prefilled) {
      routers_[i]->prefilled(fact.of, fact.due_ms);
    } else if (fact.what == step::ended) {
      routers_[i]->ended(fact.of, fact.due_ms);
    } else if (i != fact.router) {
      routers_[i]->placed_elsewhere(fact.of, fact.due_ms);
    }
  }
}

void replay_news::deliver_blocks(double now_ms) {
  while (!kv_.empty() && kv_.front().due_ms <= now_ms) {
    const auto first = kv_.front();
    batch_.clear();
    while (!kv_.empty() && kv_.front().due_ms <= now_ms && kv_.front().engine == first.engine &&
           kv_.front().stored == first.stored) {
      batch_.push_back(kv_.front().name);
      kv_.pop_front();
    }
    if (!up_[first.engine]) continue;
    if (first.stored) {
      index_.add(names_[first.engine], batch_);
    } else {
      index_.remove(names_[first.engine], batch_);
    }
  }
}

void replay_news::deliver(double now_ms) {
  deliver_blocks(now_ms);
  for (;;) {
    std::deque<life_fact>* earliest = nullptr;
    for (auto& of : life_)
      if (!of.empty() && of.front().due_ms <= now_ms && (!earliest || of.front().due_ms < earliest->front().due_ms))
        earliest = &of;
    if (!earliest) return;
    tell(earliest->front());
    earliest->pop_front();
  }
}

}  // namespace infernex::simulator
