#pragma once

#include <memory>

#include "actors/actors.hpp"
#include "actors/indexer/index_page.hpp"
#include "actors/indexer/metrics.hpp"
#include "actors/indexer/settings.hpp"
#include "actors/runtime/role.hpp"
#include "messages/published.hpp"

namespace infernex::indexer {

/// What the indexer knows. Only the actor's present incarnation changes it; it lives on when that is
/// restarted (what a failure left half done shows as a wrong digest, and is repaired).
struct indexer_facts {
  indexer_facts(const runtime& process, const settings& how, std::shared_ptr<index_set> set)
      : indexes(std::move(set)),
        sources(how.tracking, indexes),
        source_id("indexer/" + process.process),
        epoch(process.epoch),
        metrics(process.metrics) {}

  std::shared_ptr<index_set> indexes;
  tracker sources;
  published<index_page> page;
  std::string source_id;
  std::uint64_t epoch;
  std::uint64_t sequence = 0;
  indexer_metrics metrics;
};

/// Feeds the tracker from the bus, asks agents for snapshots, answers match queries.
indexer_actor spawn_indexer_actor(const runtime& process, const settings& how, std::shared_ptr<indexer_facts> facts);

/// Starts an indexer: its actor under a supervisor, and its HTTP endpoint if one is configured. It is the
/// only writer of `indexes`. Errors: system_error (address in use).
result<std::unique_ptr<role>> start(runtime& process, const settings& how, std::shared_ptr<index_set> indexes);

}  // namespace infernex::indexer
