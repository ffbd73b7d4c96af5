#pragma once

#include <condition_variable>
#include <memory>
#include <mutex>
#include <optional>
#include <thread>

#include "monitor/source.hpp"

namespace infernex::monitor {

/// The clock of poll_time::steady_ms.
std::uint64_t steady_now_ms();

/// A thread that reads one unit when told to. A driver call that never returns takes this thread with it and nothing
/// else: the owner sees for how long it is busy, and leaves it behind when it ends.
class watched_worker {
 public:
  explicit watched_worker(std::shared_ptr<reader> unit);
  /// Waits for a call under way for at most 100 ms, then lets the thread go; it ends when its call returns.
  ~watched_worker();
  watched_worker(const watched_worker&) = delete;
  watched_worker& operator=(const watched_worker&) = delete;

  const reader& unit() const { return *state_->unit; }
  /// False: still busy with the last.
  bool start(std::uint64_t now_ms);
  /// What the last call has found, and when it came back (steady clock); once.
  struct finished {
    reading_round found;
    std::uint64_t at_ms = 0;
  };
  std::optional<finished> take();
  /// How long the call under way has taken; 0: none is.
  std::uint32_t busy_ms(std::uint64_t now_ms) const;

 private:
  /// Shared with the thread, which may outlive the owner.
  struct shared {
    std::shared_ptr<reader> unit;
    mutable std::mutex guard;
    std::condition_variable changed;
    bool wanted = false;
    bool busy = false;
    bool ending = false;
    std::uint64_t began_ms = 0;
    std::optional<finished> result;
  };
  static void run(const std::shared_ptr<shared>& state);

  std::shared_ptr<shared> state_;
  std::thread thread_;
};

}  // namespace infernex::monitor
