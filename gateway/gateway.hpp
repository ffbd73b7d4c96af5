#pragma once

#include <cstdint>
#include <memory>

#include "actors/runtime/role.hpp"
#include "gateway/settings.hpp"
#include "messages/result.hpp"

namespace infernex::indexer {
class index_set;
}

namespace infernex::gateway {

class pair_exchanges;

class gateway_role : public role {
 public:
  /// Where it listens.
  virtual std::uint16_t port() const = 0;
};

/// Starts a gateway: its actor and its HTTP server. `index`: the process's KV index, written by an indexer in
/// the same process; needed for router_mode::embedded, null otherwise. `pairs`: likewise for pd_mode::embedded.
/// Errors: invalid_config (embedded without what it needs), system_error (address in use).
result<std::unique_ptr<gateway_role>> start(const runtime& process, const settings& how,
                                            std::shared_ptr<indexer::index_set> index,
                                            std::shared_ptr<pair_exchanges> pairs = nullptr);

}  // namespace infernex::gateway
