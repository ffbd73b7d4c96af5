#pragma once

#include <chrono>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "actors/simulator/step_model.hpp"

namespace infernex::simulator {

/// What a prefill engine holds for decode engines: from the end of the prefill until it has been read, was given up, or
/// its time is over. A lease that is being read does not end by time. Bounded by the KV memory.
class kv_lease_book {
 public:
  using time_point = std::chrono::steady_clock::time_point;

  struct lease {
    /// Of step_model's held blocks.
    sequence_id held = 0;
    std::vector<std::uint32_t> blocks;
    time_point ends;
    bool reading = false;
  };

  /// A second offer under the same key replaces the first, whose blocks are to be released.
  std::optional<lease> offer(std::string key, lease fresh);
  const lease* find(std::string_view key) const;

  enum class outcome : std::uint8_t { begun, unknown, busy, no_such_block };
  /// A decode engine begins to read. `named`: the blocks it was told of, empty: all.
  outcome begin_read(std::string_view key, const std::vector<std::uint32_t>& named);
  /// It is over, whether read, given up or never begun; what is to be released, if anything.
  std::optional<lease> end(std::string_view key);
  /// Those whose time is over.
  std::vector<lease> expire(time_point now);
  /// When the next one's time is over.
  std::optional<time_point> next_end() const;

  const auto& all() const { return leases_; }

 private:
  struct text_hash {
    using is_transparent = void;
    std::size_t operator()(std::string_view text) const { return std::hash<std::string_view>{}(text); }
  };
  std::unordered_map<std::string, lease, text_hash, std::equal_to<>> leases_;
};

}  // namespace infernex::simulator
