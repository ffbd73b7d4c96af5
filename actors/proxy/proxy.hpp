#pragma once

#include <cstdint>
#include <memory>

#include "actors/proxy/settings.hpp"
#include "actors/runtime/role.hpp"
#include "messages/result.hpp"

namespace infernex::proxy {

class proxy_role : public role {
 public:
  /// Where it listens.
  virtual std::uint16_t port() const = 0;
};

/// Starts a PD group's proxy: its actor under a supervisor, and its HTTP endpoint.
/// Errors: system_error (address in use).
result<std::unique_ptr<proxy_role>> start(const runtime& process, const settings& how);

}  // namespace infernex::proxy
