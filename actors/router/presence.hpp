#pragma once

#include <functional>
#include <memory>
#include <string>

#include "actors/runtime/bus.hpp"

namespace infernex::router {

/// Tells gateways that this router is there, so that all of them ask the same one for a model (docs/adr/0009).
class presence {
 public:
  presence(bus& messages, std::string router, std::function<std::unique_ptr<fb::OriginT>()> next_origin);

  /// Announces once a second.
  void on_tick(std::chrono::steady_clock::time_point now);
  /// Announces now: at the start, and when the bus is back.
  void announce();
  /// It ends: nobody should wait for its silence.
  void leave();

 private:
  void publish(bool leaving);
  bus& messages_;
  std::string router_;
  std::function<std::unique_ptr<fb::OriginT>()> next_origin_;
  std::chrono::steady_clock::time_point next_{};
};

}  // namespace infernex::router
