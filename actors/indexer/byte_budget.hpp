#pragma once

#include <atomic>
#include <cstdint>
#include <memory>
#include <utility>

namespace infernex::indexer {

/// Bytes that several owners may allocate together. With a parent, its limit counts as well. Thread-safe.
class byte_budget {
 public:
  explicit byte_budget(std::uint64_t max_bytes, std::shared_ptr<byte_budget> parent = nullptr)
      : max_(max_bytes), parent_(std::move(parent)) {}

  /// False, and nothing taken, if it does not fit or would leave less than `keep_free`.
  bool take(std::uint64_t bytes, std::uint64_t keep_free = 0) {
    if (parent_ && !parent_->take(bytes, keep_free)) return false;
    auto used = used_.load(std::memory_order_relaxed);
    do {
      if (bytes + keep_free > max_ || used > max_ - bytes - keep_free) {
        if (parent_) parent_->give_back(bytes);
        return false;
      }
    } while (!used_.compare_exchange_weak(used, used + bytes, std::memory_order_relaxed));
    return true;
  }
  /// Over the limit if need be.
  void force(std::uint64_t bytes) {
    if (parent_) parent_->force(bytes);
    used_.fetch_add(bytes, std::memory_order_relaxed);
  }
  void give_back(std::uint64_t bytes) {
    if (parent_) parent_->give_back(bytes);
    used_.fetch_sub(bytes, std::memory_order_relaxed);
  }

  std::uint64_t used() const { return used_.load(std::memory_order_relaxed); }
  /// Of the outermost budget.
  std::uint64_t used_of_all() const { return parent_ ? parent_->used_of_all() : used(); }
  std::uint64_t max() const { return max_; }

 private:
  std::uint64_t max_;
  std::atomic<std::uint64_t> used_{0};
  std::shared_ptr<byte_budget> parent_;
};

/// A share of a budget, given back with its owner.
class byte_lease {
 public:
  byte_lease() = default;
  byte_lease(byte_budget* budget, std::uint64_t bytes) : budget_(budget), bytes_(bytes) {}
  byte_lease(byte_lease&& other) noexcept
      : budget_(std::exchange(other.budget_, nullptr)), bytes_(std::exchange(other.bytes_, 0)) {}
  byte_lease& operator=(byte_lease&& other) noexcept {
    std::swap(budget_, other.budget_);
    std::swap(bytes_, other.bytes_);
    return *this;
  }
  ~byte_lease() {
    if (budget_) budget_->give_back(bytes_);
  }
  std::uint64_t bytes() const { return bytes_; }

 private:
  byte_budget* budget_ = nullptr;
  std::uint64_t bytes_ = 0;
};

}  // namespace infernex::indexer
