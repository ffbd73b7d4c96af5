#pragma once

// Private to the bus: how messages of one subscription get from NATS's delivery thread to a handler.

#include <atomic>
#include <condition_variable>
#include <deque>
#include <memory>
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

/// Destroys subscriptions some time after they ended, or when their connections' threads have. nats.c before 3.6
/// (Debian 12: 3.4) looks a subscription up and locks it in two steps when a message arrives: one that is freed in
/// between takes the process with it (nats-io/nats.c issue 637). Thread-safe.
class retired_subscriptions {
 public:
  ~retired_subscriptions() { connections_closed(); }
  void retire(natsSubscription* handle);
  /// From now on nothing can be in between: what is retired is destroyed at once.
  void connections_closed();

 private:
  using clock = std::chrono::steady_clock;
  struct retired {
    clock::time_point at;
    natsSubscription* handle;
  };
  std::mutex guard_;
  std::deque<retired> waiting_;
  bool closed_ = false;
};

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
  std::shared_ptr<retired_subscriptions> retired;

  ~impl() {
    if (handle) retired->retire(handle);
  }

  /// Begins delivery. Errors: those of NATS.
  static natsStatus begin(const std::shared_ptr<impl>& state, natsConnection* connection,
                          const std::string& queue_group);
  /// Ends delivery and waits until no call-back runs.
  void end();
};

}  // namespace infernex
