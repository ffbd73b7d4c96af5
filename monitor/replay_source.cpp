#include "monitor/replay_source.hpp"

namespace infernex::monitor {

bool replay_source::due(const poll_time& now) {
  if (!has_next_ && !ended_) {
    has_next_ = from_.next(next_);
    ended_ = !has_next_;
  }
  if (!has_next_) return false;
  if (!begun_) {
    begun_ = true;
    began_ms_ = now.steady_ms;
    began_ns_ = next_.time_ns;
  }
  const double passed_ns = static_cast<double>(now.steady_ms - began_ms_) * 1e6 * speed_;
  return next_.time_ns <= began_ns_ || static_cast<double>(next_.time_ns - began_ns_) <= passed_ns;
}

void replay_source::tell(const std::function<void(node_report&&)>& each) {
  auto data = chunk::copy_of(next_.bytes);
  node_report report;
  if (const auto sample = view<fb::HwSample>::verify(data)) {
    unpack(**sample, sample_);
    report.node = sample_.node;
    report.sample = &sample_;
  } else if (const auto event = view<fb::HwEvent>::verify(data)) {
    (*event)->UnPackTo(&report.events.emplace_back());
    report.node = report.events.front().node;
  } else if (const auto inventory = view<fb::HwInventory>::verify(data)) {
    (*inventory)->UnPackTo(&report.inventory.emplace());
    report.node = report.inventory->node;
  } else {
    ++refused_;
    return;
  }
  each(std::move(report));
}

void replay_source::poll(const poll_time& now, const std::function<void(node_report&&)>& each) {
  while (due(now)) {
    tell(each);
    has_next_ = false;
  }
}

}  // namespace infernex::monitor
