#pragma once

#include <memory>
#include <mutex>
#include <optional>
#include <string>

#include "actors/runtime/http/server.hpp"
#include "actors/simulator/api.hpp"
#include "actors/simulator/kv_publisher.hpp"

namespace infernex::simulator {

/// One life of a simulated engine, from a start to its end: threads, listeners, all state. What comes after has an
/// empty cache, another engine id and another epoch.
class engine_life {
 public:
  /// `metrics`, `registry` and `faults` live longer. `on_outage`: see engine_api.
  engine_life(settings values, metrics_registry& registry, engine_metrics& metrics, fault_book& faults,
              std::function<void(const outage&)> on_outage);
  ~engine_life();

  /// Errors: system_error.
  std::optional<error> start();
  /// Stops to listen for clients; cuts off those that are connected.
  void stop_listening();
  std::optional<error> listen_again() { return listen(); }
  void stop(std::chrono::milliseconds deadline);

  std::uint16_t port() const { return port_; }
  std::uint16_t kv_port() const { return transfer_->here().port; }
  std::string kv_endpoint() const { return publisher_ ? publisher_->endpoint() : std::string(); }
  std::string replay_endpoint() const { return publisher_ ? publisher_->replay_endpoint() : std::string(); }
  const std::string& engine_id() const { return transfer_->here().engine_id; }

 private:
  std::optional<error> listen();
  std::optional<error> listen_for_peers();
  std::size_t connections();

  const settings values_;
  metrics_registry& registry_;
  engine_metrics& metrics_;
  fault_book& faults_;
  std::function<void(const outage&)> on_outage_;
  std::unique_ptr<kv_publisher> publisher_;
  // Before the threads: requests that are cut off abort their sequences when the threads' frames go.
  std::unique_ptr<engine_loop> loop_;
  std::unique_ptr<kv_transfer> transfer_;
  std::unique_ptr<engine_api> api_;
  std::unique_ptr<http::io_threads> threads_;
  std::unique_ptr<http::server> peers_;
  std::unique_ptr<http::server> server_;
  /// For connections(), which an I/O thread asks while the listener may go.
  std::mutex listening_;
  std::uint16_t port_ = 0;
};

}  // namespace infernex::simulator
