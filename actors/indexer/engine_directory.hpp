#pragma once

#include <chrono>
#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "messages/registry.hpp"

namespace infernex::indexer {

/// What an engine's announcements say of it, besides its blocks.
struct engine_entry {
  std::string instance;
  /// Base URL of its OpenAI endpoint; empty: not known (it is followed for its KV events only).
  std::string url;
  fb::EngineState state = fb::EngineState::Unknown;
  std::string reason;
  fb::KvHealth kv_health = fb::KvHealth::Absent;
  std::optional<std::uint32_t> block_size;
  std::vector<std::string> adapters;
  friend bool operator==(const engine_entry&, const engine_entry&) = default;
  /// Whether it can be asked something.
  bool answers() const { return state == fb::EngineState::Ready && !url.empty(); }
  /// Whether its agent knows everything that it holds.
  bool shows_all() const { return kv_health == fb::KvHealth::Live; }
  /// Whether its blocks are of use, or may be again in a moment.
  bool holds_blocks() const { return state != fb::EngineState::Down && state != fb::EngineState::Starting; }
};

/// The engines of all models: an immutable snapshot for other threads.
struct engine_list {
  struct model {
    std::vector<engine_entry> engines;  // by instance
    /// Tokens a block of the model's keys: as the first engine says that knows, those that are ready first.
    std::optional<std::uint32_t> block_size() const;
    const engine_entry* find(std::string_view instance) const;
  };
  std::map<std::string, model, std::less<>> models;

  const model* find(std::string_view name) const;
  /// The base model of an adapter of that name; empty if there is none.
  std::string_view model_of_adapter(std::string_view adapter) const;
};

struct directory_limits {
  std::size_t max_engines = 16'384;
  std::size_t max_name_bytes = 512;
  /// After this much silence an engine is forgotten.
  std::chrono::milliseconds forget{60'000};
};

/// Keeps the newest announcement of each engine. One owner.
class engine_directory {
 public:
  using time_point = std::chrono::steady_clock::time_point;
  explicit engine_directory(directory_limits limits) : limits_(limits) {}

  void on_announce(const fb::EngineAnnounce& message, time_point now);
  /// Forgets who has been silent for long; nobody while the bus is down, for silence then says nothing of the engines.
  void on_tick(time_point now);
  void on_bus(bool connected, time_point now);
  /// Made anew only if something has changed; never null.
  std::shared_ptr<const engine_list> list();
  /// Null if it is not known.
  const engine_entry* find(std::string_view model, std::string_view instance) const;
  /// Announcements refused for a bound.
  std::uint64_t refused() const { return refused_; }

 private:
  struct known {
    engine_entry entry;
    std::uint64_t epoch = 0;
    std::uint64_t sequence = 0;
    time_point heard;
  };
  using engines = std::map<std::string, known, std::less<>>;
  known* obtain(std::string_view model, std::string_view instance);

  directory_limits limits_;
  std::map<std::string, engines, std::less<>> models_;
  std::size_t size_ = 0;
  std::uint64_t refused_ = 0;
  bool bus_connected_ = true;
  /// Null: to be made.
  std::shared_ptr<const engine_list> list_;
};

}  // namespace infernex::indexer
