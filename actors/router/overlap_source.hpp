#pragma once

#include <optional>

#include "actors/router/kvmanager_client.hpp"
#include "actors/router/settings.hpp"
#include "actors/runtime/bus.hpp"

namespace infernex::router {

/// Where overlaps come from: the indexers on the bus, or the KV manager that is configured instead.
class overlap_source {
 public:
  /// The bus must outlive it.
  overlap_source(bus& messages, const settings& how);
  /// `done` is called once, within timeout(), on a thread of the bus or of HTTP; it must not block.
  void ask(const fb::KvMatchQueryT& question, kvmanager_client::completion done);
  std::chrono::milliseconds timeout() const { return timeout_; }

 private:
  bus& messages_;
  std::chrono::milliseconds timeout_;
  std::optional<kvmanager_client> manager_;
};

}  // namespace infernex::router
