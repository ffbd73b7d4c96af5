#pragma once

#include <algorithm>
#include <cstdint>
#include <mutex>

namespace infernex::engine {

/// Epochs (nanoseconds since 1970) of what one process publishes of its engines: each is later than all before it,
/// whatever the clock does, so that the end of an agent always outranks the agent. Thread-safe.
class epoch_source {
 public:
  /// Nothing is earlier than `first`, which belongs to the process's own agents.
  explicit epoch_source(std::uint64_t first) : last_(first) {}
  std::uint64_t take(std::uint64_t wall_ns) {
    const std::lock_guard lock(guard_);
    return last_ = std::max(wall_ns, last_ + 1);
  }

 private:
  std::mutex guard_;
  std::uint64_t last_;
};

}  // namespace infernex::engine
