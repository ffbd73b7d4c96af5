#pragma once

#include <functional>
#include <memory>

#include "actors/actors.hpp"
#include "actors/discovery/engine_descriptor.hpp"
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
        engines(how.engines),
        ready(how.ready),
        stale_after(how.tracking.sync.silence),
        source_id("indexer/" + process.process),
        epoch(process.epoch),
        metrics(process.metrics) {}

  std::shared_ptr<index_set> indexes;
  tracker sources;
  engine_directory engines;
  readiness ready;
  std::chrono::milliseconds stale_after;
  published<index_page> page;
  std::string source_id;
  std::uint64_t epoch;
  std::uint64_t sequence = 0;
  indexer_metrics metrics;
};

/// Feeds the tracker from the bus, asks agents for snapshots, answers match queries.
indexer_actor spawn_indexer_actor(const runtime& process, const settings& how, std::shared_ptr<indexer_facts> facts);

/// Who follows engines that are registered over HTTP: `nodes` puts the engine agents of this process behind it. All
/// are called on an HTTP thread and must not block. Empty: nobody does.
struct registrar {
  /// The descriptor's url may be empty. Errors: invalid_request, overloaded (too many).
  std::function<error(const discovery::engine_descriptor&)> add;
  /// False: no engine of that name was registered so.
  std::function<bool(const std::string& instance)> remove;
  /// False: it was never added, was removed, or its agent could not be kept running. Empty: what was added is followed.
  std::function<bool(const std::string& instance)> follows;
};

/// Starts an indexer: its actor under a supervisor, and its HTTP endpoint if one is configured. It is the
/// only writer of `indexes`. Errors: system_error (address in use).
result<std::unique_ptr<role>> start(runtime& process, const settings& how, std::shared_ptr<index_set> indexes,
                                    registrar engines = {});

}  // namespace infernex::indexer
