#pragma once

#include "monitor/collector.hpp"
#include "monitor/watched_worker.hpp"

namespace infernex::monitor {

/// The devices of this node: a watched worker for each reader, and the collector. Readers in the order of trust.
class node_source final : public report_source {
 public:
  node_source(collector_settings how, std::vector<std::shared_ptr<reader>> readers);
  void poll(const poll_time& now, const std::function<void(node_report&&)>& each) override;

 private:
  struct watched {
    std::unique_ptr<watched_worker> worker;
    std::uint64_t next_ms = 0;
  };
  collector collected_;
  std::vector<watched> workers_;
};

}  // namespace infernex::monitor
