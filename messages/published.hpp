#pragma once

#include <atomic>
#include <cstdint>
#include <memory>
#include <mutex>
#include <utility>

namespace infernex {

/// A snapshot that one owner replaces and any number of threads read. A reader keeps a pointer and a
/// version: as long as the version stands, reading is one atomic load (atomic<shared_ptr> is not lock-free
/// in g++ 12); only after a replacement does it take the lock, once.
template <class T>
class published {
 public:
  void publish(std::shared_ptr<const T> next) {
    const std::lock_guard lock(guard_);
    current_ = std::move(next);
    version_.fetch_add(1, std::memory_order_release);
  }

  class reader {
   public:
    explicit reader(const published& source) : source_(&source) {}
    /// May be null before the first publish. Valid until the next call.
    const T* get() {
      const auto version = source_->version_.load(std::memory_order_acquire);
      if (version != seen_) {
        const std::lock_guard lock(source_->guard_);
        held_ = source_->current_;
        seen_ = source_->version_.load(std::memory_order_relaxed);
      }
      return held_.get();
    }
    const std::shared_ptr<const T>& shared() {
      get();
      return held_;
    }

   private:
    const published* source_;
    std::uint64_t seen_ = 0;
    std::shared_ptr<const T> held_;
  };

 private:
  mutable std::mutex guard_;
  std::shared_ptr<const T> current_;
  std::atomic<std::uint64_t> version_{0};
};

}  // namespace infernex
