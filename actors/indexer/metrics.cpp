#include "actors/indexer/metrics.hpp"

namespace infernex::indexer {

namespace {
const std::string deltas = "infernex_indexer_deltas_total";
const std::string deltas_help = "KV deltas by what became of them";
const std::string snapshots = "infernex_indexer_snapshots_total";
const std::string snapshots_help = "Snapshots of agents' mirrors: requested, applied, refused for their size";
}  // namespace

indexer_metrics::indexer_metrics(metrics_registry& r)
    : lookup_seconds(
          r.histogram("infernex_indexer_lookup_seconds", "One match query, all its chains", internal_buckets())),
      applied_{&r.counter(deltas, deltas_help, {{"outcome", "applied"}})},
      ignored_{&r.counter(deltas, deltas_help, {{"outcome", "ignored"}})},
      shed_{&r.counter(deltas, deltas_help, {{"outcome", "shed"}})},
      gaps_{&r.counter("infernex_indexer_gaps_total", "Jumps in an agent's sequence")},
      mismatches_{&r.counter("infernex_indexer_mismatches_total", "Digests that differed from the agent's")},
      requested_{&r.counter(snapshots, snapshots_help, {{"outcome", "requested"}})},
      installed_{&r.counter(snapshots, snapshots_help, {{"outcome", "applied"}})},
      too_large_{&r.counter(snapshots, snapshots_help, {{"outcome", "refused"}})},
      refused_{&r.counter("infernex_indexer_refused_total", "Messages refused: models, instances or length of names")},
      keys_refused_{&r.counter("infernex_indexer_keys_refused_total", "Blocks refused because the index is full")},
      forgotten_{&r.counter("infernex_indexer_forgotten_total", "Engines forgotten after their agent's silence")},
      keys_(r.gauge("infernex_indexer_keys", "Distinct block keys, all models")),
      bytes_(r.gauge("infernex_indexer_bytes", "Bytes of all indexes")),
      sources_(r.gauge("infernex_indexer_sources", "Engines known")),
      exact_(r.gauge("infernex_indexer_exact_sources", "Engines whose part equals their agent's mirror")),
      capped_(
          r.gauge("infernex_indexer_capped_sources", "Engines of which blocks were refused, the index being full")) {}

void indexer_metrics::update(const totals& now) {
  applied_.to(now.sync.deltas_applied);
  ignored_.to(now.sync.deltas_ignored);
  shed_.to(now.sync.deltas_shed);
  gaps_.to(now.sync.gaps);
  mismatches_.to(now.sync.mismatches);
  requested_.to(now.sync.snapshots_requested);
  installed_.to(now.sync.snapshots_applied);
  too_large_.to(now.sync.snapshots_refused);
  refused_.to(now.refused);
  keys_refused_.to(now.keys_refused);
  forgotten_.to(now.forgotten);
  keys_.Set(static_cast<double>(now.keys));
  bytes_.Set(static_cast<double>(now.bytes));
  sources_.Set(static_cast<double>(now.sources));
  exact_.Set(static_cast<double>(now.exact_sources));
  capped_.Set(static_cast<double>(now.capped_sources));
}

}  // namespace infernex::indexer
