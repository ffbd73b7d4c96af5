#pragma once

#include "actors/indexer/source.hpp"
#include "actors/runtime/metrics.hpp"

namespace infernex::indexer {

/// `infernex_indexer_…`.
class indexer_metrics {
 public:
  explicit indexer_metrics(metrics_registry& registry);

  struct totals {
    sync_counters sync;
    std::uint64_t refused = 0;
    std::uint64_t keys_refused = 0;
    std::uint64_t forgotten = 0;
    std::uint64_t keys = 0;
    std::uint64_t bytes = 0;
    std::uint64_t sources = 0;
    std::uint64_t exact_sources = 0;
    std::uint64_t capped_sources = 0;
  };
  /// Brings counters and gauges to these totals.
  void update(const totals& now);

  prometheus::Histogram& lookup_seconds;

 private:
  struct followed {
    prometheus::Counter* shown;
    std::uint64_t total = 0;
    void to(std::uint64_t next) {
      if (next > total) shown->Increment(static_cast<double>(next - total));
      total = next;
    }
  };
  followed applied_, ignored_, shed_, gaps_, mismatches_, requested_, installed_, too_large_, refused_, keys_refused_,
      forgotten_;
  prometheus::Gauge& keys_;
  prometheus::Gauge& bytes_;
  prometheus::Gauge& sources_;
  prometheus::Gauge& exact_;
  prometheus::Gauge& capped_;
};

}  // namespace infernex::indexer
