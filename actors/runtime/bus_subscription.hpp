#pragma once

// Private to the bus: how messages of one subscription get from NATS's delivery thread to a handler.

#include <atomic>
#include <condition_variable>
#include <mutex>
#include <thread>

#include <nats/nats.h>

#include "actors/runtime/bus.hpp"

namespace prometheus {
class Counter;
}

namespace infernex {

/// The header of a message that stands for a refusal; its value is the errc's name.
inline constexpr const char* error_header = "Infernex-Error";

errc from_nats(natsStatus status);

/// Shared by the handle, the delivery thread's call-back and every message alive: the last of them ends it.
struct subscription::impl {
  natsSubscription* handle = nullptr;
  bus::raw_handler handler;
  bus* owner = nullptr;
  std::uint32_t credit = 0;
  std::string name;
  std::atomic<std::uint32_t> alive{0};
  std::atomic<std::uint64_t> dropped{0};
  std::atomic<bool> ended{false};
  std::atomic<std::thread::id> delivering{};
  std::mutex guard;
  std::condition_variable completed_changed;
  bool completed = false;
  prometheus::Counter* dropped_total = nullptr;

  ~impl() {
    if (handle) natsSubscription_Destroy(handle);
  }

  /// Begins delivery. Errors: those of NATS.
  static natsStatus begin(const std::shared_ptr<impl>& state, natsConnection* connection,
                          const std::string& queue_group);
  /// Ends delivery and waits until no call-back runs.
  void end();
};

}  // namespace infernex
