#pragma once

#include <functional>
#include <memory>
#include <string>

#include "actors/indexer/actor.hpp"
#include "actors/indexer/conductor.hpp"
#include "actors/indexer/registrations.hpp"
#include "actors/runtime/http/server.hpp"

namespace infernex::indexer {

/// What the HTTP side of an indexer works with; for one worker's thread.
struct api_context {
  api_context(std::shared_ptr<indexer_facts> of, const metrics_registry& shown, std::function<bool()> bus_connected,
              const settings& with, registrar engines)
      : facts(std::move(of)),
        metrics(shown),
        connected(std::move(bus_connected)),
        how(with),
        registered(std::move(engines)),
        pages(facts->page),
        lookups(*facts->indexes) {}

  std::shared_ptr<indexer_facts> facts;
  const metrics_registry& metrics;
  std::function<bool()> connected;
  settings how;
  registrar registered;
  published<index_page>::reader pages;
  index_set::reader lookups;
  registrations known;
  /// Which engine is asked next for a prompt's tokens.
  std::size_t turn = 0;
  /// Prompts that engines are asked about now.
  std::size_t asking = 0;

  /// The newest page: an empty one before the first.
  std::shared_ptr<const index_page> page();
};

/// Answers docs/indexer-api.md, /metrics, /healthz and /readyz.
http::task<void> serve_api(std::shared_ptr<api_context> at, http::worker& worker, const http::request& in,
                           http::responder& out);

// --- the parts of it, one for each group of paths ---

/// One request under way.
struct api_call {
  api_context& at;
  http::worker& worker;
  const http::request& in;
  http::responder& out;
  std::chrono::steady_clock::time_point deadline;
};

http::task<void> answer_json(http::responder& out, std::string body);
http::task<void> refuse(http::responder& out, refusal why);

/// Engines that hold the chain's first block; valid until the next look-up.
std::span<const match> look_up(api_call& call, const std::string& index, std::span<const block_key> chain);

http::task<void> serve_match_sort(api_call& call);
http::task<void> serve_dump(api_call& call);
// Mooncake's Conductor.
http::task<void> serve_register(api_call& call);
http::task<void> serve_unregister(api_call& call);
http::task<void> serve_query(api_call& call);
http::task<void> serve_query_by_hash(api_call& call);

}  // namespace infernex::indexer
