#pragma once

#include <atomic>
#include <cstdint>
#include <memory>
#include <utility>

namespace infernex::engine {

/// Bounds how many replays run at once: an engine serves them from the thread that publishes, and after a
/// failure of the network every listener of a process wants one. Thread-safe, no lock.
class replay_permits : public std::enable_shared_from_this<replay_permits> {
 public:
  /// Held while a replay runs; its destructor gives it back.
  class permit {
   public:
    explicit permit(std::shared_ptr<replay_permits> from) : from_(std::move(from)) {}
    permit(permit&& other) noexcept = default;
    permit& operator=(permit&& other) noexcept {
      std::swap(from_, other.from_);
      return *this;
    }
    ~permit() {
      if (from_) from_->taken_.fetch_sub(1, std::memory_order_release);
    }
    explicit operator bool() const { return from_ != nullptr; }

   private:
    std::shared_ptr<replay_permits> from_;
  };

  explicit replay_permits(std::uint32_t most) : most_(most) {}

  /// False: all are taken.
  permit take() {
    auto taken = taken_.load(std::memory_order_relaxed);
    while (taken < most_)
      if (taken_.compare_exchange_weak(taken, taken + 1, std::memory_order_acquire)) return permit(shared_from_this());
    return permit(nullptr);
  }
  std::uint32_t taken() const { return taken_.load(std::memory_order_relaxed); }

  /// What every listener of this process shares unless told otherwise.
  static const std::shared_ptr<replay_permits>& of_process() {
    static const auto shared = std::make_shared<replay_permits>(8);
    return shared;
  }

 private:
  std::uint32_t most_;
  std::atomic<std::uint32_t> taken_{0};
};

}  // namespace infernex::engine
