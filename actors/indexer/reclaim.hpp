#pragma once

#include <atomic>
#include <cstdint>
#include <deque>
#include <list>
#include <memory>
#include <mutex>

namespace infernex::indexer {

/// Keeps what the writer has taken out of sight alive until no reader can still be looking at it (epoch
/// based reclamation). A reader marks itself with the present epoch before it loads any shared pointer and
/// unmarks itself after its last use; the writer stores the new pointer first and then raises the epoch, so
/// a reader marked with the raised epoch, or not marked, cannot hold the old pointer. Marking and loading,
/// storing and scanning are sequentially consistent: either the scan sees the mark, or the marked reader
/// sees the new pointer.
class reclaimer {
 public:
  struct alignas(64) mark {
    std::atomic<std::uint64_t> epoch{0};  // 0: not reading
  };

  /// For a reader's lifetime. Takes a lock; reading does not.
  mark* enrol() const {
    const std::lock_guard lock(guard_);
    return &marks_.emplace_back();
  }
  void leave(mark* reader) const {
    const std::lock_guard lock(guard_);
    marks_.remove_if([reader](const mark& m) { return &m == reader; });
  }

  /// One stretch of reading.
  class reading {
   public:
    reading(const reclaimer& owner, mark& reader) : reader_(reader) {
      reader_.epoch.store(owner.epoch_.load(std::memory_order_seq_cst), std::memory_order_seq_cst);
    }
    reading(const reading&) = delete;
    ~reading() { reader_.epoch.store(0, std::memory_order_release); }

   private:
    mark& reader_;
  };

  // --- writer ---
  /// To be called after new pointers have been stored: when the returned epoch has passed, nobody sees the
  /// old ones.
  std::uint64_t raise() { return epoch_.fetch_add(1, std::memory_order_seq_cst) + 1; }

  bool passed(std::uint64_t epoch) const {
    const std::lock_guard lock(guard_);
    for (const auto& m : marks_) {
      const auto seen = m.epoch.load(std::memory_order_seq_cst);
      if (seen != 0 && seen < epoch) return false;
    }
    return true;
  }

  /// Destroys `object`, which nobody can reach any more from now on, once the readers have moved on.
  void retire(std::shared_ptr<const void> object) {
    retired_.push_back({raise(), std::move(object)});
    collect();
  }
  void collect() {
    while (!retired_.empty() && passed(retired_.front().epoch)) retired_.pop_front();
  }

 private:
  struct waiting {
    std::uint64_t epoch;
    std::shared_ptr<const void> object;
  };
  std::atomic<std::uint64_t> epoch_{1};
  mutable std::mutex guard_;
  mutable std::list<mark> marks_;
  std::deque<waiting> retired_;
};

}  // namespace infernex::indexer
