#include "monitor/node_source.hpp"

#include <algorithm>

namespace infernex::monitor {

node_source::node_source(collector_settings how, std::vector<std::shared_ptr<reader>> readers)
    : collected_(std::move(how)) {
  for (auto& one : readers) workers_.push_back({std::make_unique<watched_worker>(std::move(one)), 0});
}

void node_source::poll(const poll_time& now, const std::function<void(node_report&&)>& each) {
  int rank = 0;
  for (auto& [worker, next_ms] : workers_) {
    const auto& unit = worker->unit();
    if (auto done = worker->take()) {
      const auto then = std::min(done->at_ms, now.steady_ms);
      collected_.on_round(unit.kind(), rank, std::move(done->found),
                          {then, now.wall_ns - (now.steady_ms - then) * 1'000'000});
    }
    if (const auto device = unit.device())
      collected_.on_busy(*device, unit.kind(), worker->busy_ms(now.steady_ms), unit.deadline_ms(), now);
    if (now.steady_ms >= next_ms && worker->start(now.steady_ms)) next_ms = now.steady_ms + unit.period_ms();
    ++rank;
  }
  each(collected_.report(now));
}

}  // namespace infernex::monitor
