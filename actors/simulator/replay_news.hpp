#pragma once

#include <cstdint>
#include <deque>
#include <memory>
#include <span>
#include <vector>

#include "actors/indexer/kv_index.hpp"
#include "actors/simulator/replay_policy.hpp"

namespace infernex::simulator {

/// How late the control plane knows.
struct replay_delays {
  /// From the end of an engine's step to its blocks in the index: agent, bus, indexer.
  double kv_event_ms = 2;
  /// Each engine's load is measured and told so often; as agents scrape.
  double report_interval_ms = 1'000;
  /// Gateways tell what they have in flight so often; 0: at once, as with an embedded router.
  double life_interval_ms = 20;
};

/// What the router replicas come to know, and when: the KV index, which they share, and the gateways' tellings. Told
/// things take effect in the order of time once deliver() reaches their moment.
class replay_news {
 public:
  replay_news(replay_delays delays, std::uint32_t engines, std::uint32_t gateways);

  const indexer::kv_index& index() const { return index_; }
  /// The replicas, once they are made.
  void tell_to(std::vector<std::unique_ptr<replay_policy>>& routers);

  void engine_up(std::uint32_t engine, double now_ms);
  void engine_down(std::uint32_t engine, double now_ms);
  void load_reported(std::uint32_t engine, const engine_load& load, double now_ms);
  void blocks_changed(std::uint32_t engine, std::span<const cache_change> changes, double now_ms);

  enum class step : std::uint8_t { placed, prefilled, ended };
  /// `router` placed it; the gateway tells all of them.
  void progress(step what, const replay_progress& of, std::uint32_t gateway, std::uint32_t router, double now_ms);

  /// All that is known by now. To be called before every decision.
  void deliver(double now_ms);

 private:
  struct kv_fact {
    double due_ms;
    block_name name;
    std::uint32_t engine;
    bool stored;
  };
  struct life_fact {
    double due_ms;
    step what;
    std::uint32_t router;
    replay_progress of;
  };

  void deliver_blocks(double now_ms);
  void tell(const life_fact& fact);

  replay_delays delays_;
  indexer::kv_index index_;
  bool index_used_ = false;
  std::vector<std::string> names_;
  std::vector<bool> up_;
  std::span<const std::unique_ptr<replay_policy>> routers_;
  std::deque<kv_fact> kv_;
  /// By gateway.
  std::vector<std::deque<life_fact>> life_;
  std::vector<block_name> batch_;  // scratch
};

}  // namespace infernex::simulator
