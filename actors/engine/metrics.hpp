#pragma once

#include <string>

#include "actors/engine/ledger.hpp"
#include "actors/engine/parity.hpp"
#include "actors/runtime/metrics.hpp"

namespace infernex::engine {

/// The metrics of one engine's agent, all with the label `instance`. Counters go on over a restart of the
/// actor; one object per incarnation, used by its actor only.
class agent_metrics {
 public:
  agent_metrics(metrics_registry& registry, std::string instance);

  void on_events(const event_batch& group);
  void on_probe(const probe_result& probe);
  void on_parity(parity_fault fault);
  /// Brings gauges and totals up to what the ledger says.
  void follow(const ledger& book);

  prometheus::Counter& deltas;
  prometheus::Counter& announcements;
  prometheus::Counter& snapshots;
  prometheus::Counter& unsent;

 private:
  metrics_registry& registry_;
  std::string instance_;
  drop_counts dropped_;
  source_state::counts stream_;
  form_counts forms_;
  prometheus::Gauge& keys_;
  prometheus::Gauge& bytes_;
  prometheus::Gauge& parked_;
  prometheus::Gauge& ready_;
};

}  // namespace infernex::engine
