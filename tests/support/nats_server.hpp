#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include "tests/support/process.hpp"

namespace infernex::test {

/// A TCP port of 127.0.0.1 that was free a moment ago.
std::uint16_t free_port();

/// A real nats-server on loopback, ready when constructed, ended with its owner.
class nats_server {
 public:
  nats_server();
  const std::string& url() const { return url_; }
  void kill();
  /// Stops it from reading, as a swapping machine would; and lets it go on.
  void freeze();
  void thaw();
  /// Again on the same port.
  void restart();

 private:
  std::uint16_t port_;
  std::string url_;
  std::optional<process> server_;
};

}  // namespace infernex::test
