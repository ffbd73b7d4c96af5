// link: infernex_indexer_core
#include <algorithm>
#include <cstdlib>
#include <optional>
#include <string_view>
#include <vector>

#include "actors/indexer/tracker.hpp"
#include "messages/view.hpp"
#include "tests/fuzz/byte_reader.hpp"

namespace {

using namespace infernex;
using namespace std::chrono_literals;

std::unique_ptr<fb::OriginT> origin(std::uint64_t epoch, std::uint64_t sequence) {
  auto from = std::make_unique<fb::OriginT>();
  from->id = "agent/e0";
  from->epoch = epoch;
  from->sequence = sequence;
  return from;
}

template <class Table>
std::optional<view<Table>> verified(std::span<const std::uint8_t> bytes) {
  auto found = view<Table>::verify(chunk::copy_of(bytes));
  if (!found) return std::nullopt;
  return *std::move(found);
}

template <class Table, class Object>
view<Table> travelled(const Object& object) {
  const auto buffer = encode(object);
  return *verified<Table>(bytes_of(buffer));
}

/// Messages of one engine's agent, as fuzz bytes order them.
class messages_of {
 public:
  messages_of(test::byte_reader& from, indexer::tracker& to) : from_(from), to_(to) {}

  void next() {
    switch (from_.below(8)) {
      case 0:
        return announce();
      case 1:
      case 2:
        return delta();
      case 3:
      case 4:
        return chunk_of_fields();
      case 5:
        return chunk_of_bytes();
      case 6:
        now_ += std::chrono::milliseconds(100 * from_.byte());
        to_.on_tick(now_);
        return;
      default:
        to_.on_bus(from_.below(2) == 0, now_);
    }
  }

  /// Whatever was before: a new agent whose engine holds nothing is followed at once.
  void check_end() {
    to_.on_bus(true, now_);
    fb::EngineAnnounceT hello;
    hello.model = "m";
    hello.instance = "e0";
    hello.state = fb::EngineState::Ready;
    hello.origin = origin(~std::uint64_t{0}, 1);
    to_.on_announce(*travelled<fb::EngineAnnounce>(hello), now_);
    for (const auto& source : to_.status(now_))
      if (source.instance == "e0" && (!source.exact || source.keys != 0 || source.digest != 0)) std::abort();
  }

 private:
  std::vector<std::uint64_t> keys() {
    std::vector<std::uint64_t> some(from_.below(8));
    for (auto& key : some) key = 1 + from_.below(16);
    return some;
  }
  std::optional<std::uint64_t> engine_epoch() {
    const auto epoch = from_.below(4);
    return epoch == 0 ? std::nullopt : std::optional<std::uint64_t>(epoch);
  }

  void announce() {
    fb::EngineAnnounceT message;
    message.origin = origin(from_.below(4), from_.below(16));
    message.model = "m";
    message.instance = from_.below(4) == 0 ? "e1" : "e0";
    message.state = static_cast<fb::EngineState>(from_.below(5));
    message.engine_epoch = engine_epoch();
    message.kv_sequence = from_.below(8);
    message.kv_keys = from_.below(8);
    message.kv_digest = from_.below(32);
    to_.on_announce(*travelled<fb::EngineAnnounce>(message), now_);
  }

  /// What every message about the engine's blocks begins with.
  template <class Message>
  Message of_e0(std::uint32_t sequences) {
    Message message;
    message.origin = origin(from_.below(4), from_.below(sequences));
    message.model = "m";
    message.instance = "e0";
    message.engine_epoch = engine_epoch();
    return message;
  }

  void delta() {
    auto message = of_e0<fb::KvDeltaT>(8);
    message.cleared = from_.below(8) == 0;
    message.removed = keys();
    message.added = keys();
    message.kv_keys = from_.below(8);
    message.kv_digest = from_.below(32);
    to_.on_delta(*travelled<fb::KvDelta>(message), now_);
  }

  void chunk_of_fields() {
    auto message = of_e0<fb::KvSnapshotChunkT>(4);
    message.as_of = from_.below(8);
    const auto total = from_.byte();
    message.total = total == 255 ? 0xffff'ffff : total % 4;
    message.index = from_.below(4);
    message.tier = static_cast<fb::KvTier>(from_.below(3));
    message.closed = from_.below(2) == 0;
    message.keys = keys();
    to_.on_chunk(*travelled<fb::KvSnapshotChunk>(message), now_);
  }

  /// The bytes of a chunk as they come, under its identifier.
  void chunk_of_bytes() {
    const auto size = std::size_t{from_.byte()} + 1;
    const auto raw = from_.bytes(size);
    std::vector<std::uint8_t> bytes(raw.begin(), raw.end());
    if (bytes.size() < 8) return;
    const std::string_view identifier = "IXSC";
    std::copy(identifier.begin(), identifier.end(), bytes.begin() + 4);
    if (const auto message = verified<fb::KvSnapshotChunk>(bytes)) to_.on_chunk(**message, now_);
  }

  test::byte_reader& from_;
  indexer::tracker& to_;
  indexer::time_point now_{std::chrono::hours(1)};
};

}  // namespace

// Any order of announcements, deltas and snapshot chunks, made of fields and made of bytes: never a crash, and
// never a state from which a new agent's first announcement does not lead out.
extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  test::byte_reader bytes(data, size);
  const auto indexes = std::make_shared<indexer::index_set>();
  indexer::tracker followed({}, indexes);
  messages_of agent(bytes, followed);
  while (!bytes.done()) agent.next();
  agent.check_end();
  return 0;
}
