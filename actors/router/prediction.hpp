#pragma once

#include <chrono>
#include <cstdint>
#include <map>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "actors/indexer/kv_index.hpp"
#include "actors/router/recent_keys.hpp"
#include "actors/router/topology.hpp"
#include "messages/published.hpp"

namespace infernex::router {

using clock_point = std::chrono::steady_clock::time_point;

/// About so many tokens lie behind one key of a prompt's text.
inline constexpr std::uint32_t text_block_tokens = 128;

struct prediction_settings {
  bool enabled = true;
  /// How long what was routed to an engine is expected in its cache where nothing else tells: the engine publishes
  /// no KV events, or the key is one of text.
  std::chrono::milliseconds ttl{120'000};
  /// The same where events will tell: only as long as they may take.
  std::chrono::milliseconds speculative_ttl{2'000};
  /// Blocks an engine is expected to keep at most, and what counts for one that does not announce its size.
  std::uint32_t max_blocks_per_instance = 131'072;
  /// Memory for all predictions, a quarter of it for the open requests that they may have to follow.
  std::uint64_t max_bytes = 256ULL << 20;
  std::uint64_t book_bytes() const { return max_bytes / 4; }
};

/// What was routed where lately: the blocks an engine should cache although it has not said so (yet). One writer;
/// any thread may look up through a reader of its own, without a lock. Keys of tokens and of text lie in indexes
/// apart, and each model has its own.
///
/// An engine's predictions age by their last use: they expire (by what the engine announces of its KV events), the
/// least recently used make room for others, and the end of a prompt goes before its beginning. Expiry shows at the
/// next expire(), not by itself.
class prediction_index {
 public:
  using block_key = indexer::block_key;

  explicit prediction_index(prediction_settings how);
  ~prediction_index();
  const prediction_settings& how() const { return how_; }

  // --- writer ---
  /// Takes the engines' sizes and health from the topology. Forgets what was predicted of engines that are gone or
  /// down, and of those whose process was replaced: their caches are empty.
  void follow(const topology& present);
  struct recorded {
    /// Leading blocks that were predicted there before.
    std::uint32_t had = 0;
    /// `now`, or just after the record before: no two records have the same, for withdraw() tells them apart by it.
    clock_point at;
  };
  /// A prompt goes to an engine. Engines that the topology did not show are left out.
  recorded record(std::string_view model, fb::KeyMode mode, std::string_view instance, std::span<const block_key> chain,
                  clock_point now);
  /// It went elsewhere after all: takes back what that record() has added, but for what others have confirmed since.
  void withdraw(std::string_view model, fb::KeyMode mode, std::string_view instance, std::span<const block_key> chain,
                recorded what);
  void expire(clock_point now);

  struct counters {
    std::uint64_t entries = 0;
    std::uint64_t bytes = 0;
    /// Entries that made room for later ones; that outlived their time; that found no room.
    std::uint64_t evicted = 0;
    std::uint64_t expired = 0;
    std::uint64_t shed = 0;
  };
  counters count() const;

 private:
  /// The two indexes of a model, by fb::KeyMode.
  struct store {
    explicit store(const std::shared_ptr<indexer::byte_budget>& budget);
    indexer::kv_index by_mode[2];
  };
  using store_map = std::map<std::string, std::shared_ptr<store>, std::less<>>;
  struct engine_state;
  struct model_state;

 public:
  /// One per reading thread; the index must outlive it.
  class reader {
   public:
    explicit reader(const prediction_index& of) : stores_(of.published_) {}
    /// Engines that should hold the first block, and how many leading blocks. Valid until the next call.
    std::span<const indexer::match> lookup(std::string_view model, fb::KeyMode mode, std::span<const block_key> chain);

   private:
    struct open_store {
      std::shared_ptr<const store> held;
      std::unique_ptr<indexer::kv_index::reader> by_mode[2];  // end before what they read
    };
    published<store_map>::reader stores_;
    const store_map* seen_ = nullptr;
    std::map<std::string, open_store, std::less<>> open_;
  };

 private:
  engine_state* find(std::string_view model, std::string_view instance, model_state*& of);
  void forget(model_state& of, const std::string& instance, engine_state& engine);
  std::uint32_t room_for(recent_keys& recent, std::uint32_t wanted, std::uint32_t bound);
  void publish();

  prediction_settings how_;
  std::shared_ptr<indexer::byte_budget> budget_;
  std::map<std::string, model_state, std::less<>> models_;
  published<store_map> published_;
  counters count_;
  clock_point next_expiry_;
  clock_point last_record_;
  std::vector<block_key> gone_;  // scratch
};

}  // namespace infernex::router
