#pragma once

#include <algorithm>
#include <mutex>
#include <set>
#include <string>
#include <vector>

#include "actors/runtime/bus.hpp"

namespace infernex::test {

/// An engine agent as the bus sees it: announces an engine, publishes changes of a set of block keys,
/// answers snapshot requests. Thread-safe: requests are answered on the bus's threads.
class fake_agent {
 public:
  fake_agent(bus& messages, std::string model, std::string instance, std::uint64_t epoch = 1'000)
      : messages_(messages), model_(std::move(model)), instance_(std::move(instance)), epoch_(epoch) {
    requests_ = *messages_.subscribe(messages_.names().kv_snapshot(model_, instance_), {lane::rpc, {}, 64},
                                     [this](inbound<fb::KvSnapshotRequest>&& request) { answer(request.reply_to); });
  }

  void announce(fb::EngineState state = fb::EngineState::Ready) {
    const std::lock_guard lock(guard_);
    fb::EngineAnnounceT m;
    m.origin = origin(++announced_);
    m.model = model_;
    m.instance = instance_;
    m.url = "http://127.0.0.1/" + instance_;
    m.state = state;
    m.engine_epoch = engine_epoch_;
    m.block_size = 16;
    m.kv_health = fb::KvHealth::Live;
    m.kv_sequence = sequence_;
    m.kv_keys = mirror_.size();
    m.kv_digest = digest();
    messages_.publish(messages_.names().announce(model_, instance_), encode(m), lane::rpc);
  }

  void load(std::uint32_t waiting, double kv_usage) {
    const std::lock_guard lock(guard_);
    fb::EngineLoadT m;
    m.origin = origin(++loads_);
    m.model = model_;
    m.instance = instance_;
    m.running = 0;
    m.waiting = waiting;
    m.kv_usage = kv_usage;
    messages_.publish(messages_.names().load(model_, instance_), encode(m));
  }

  enum class fate { sent, lost };
  /// Changes the mirror, and publishes the change unless it is to be lost.
  void change(const std::vector<std::uint64_t>& removed, const std::vector<std::uint64_t>& added,
              fate what = fate::sent, bool cleared = false) {
    const std::lock_guard lock(guard_);
    if (cleared) mirror_.clear();
    for (const auto k : removed) mirror_.erase(k);
    mirror_.insert(added.begin(), added.end());
    fb::KvDeltaT m;
    m.origin = origin(++sequence_);
    m.model = model_;
    m.instance = instance_;
    m.engine_epoch = engine_epoch_;
    m.cleared = cleared;
    m.removed = removed;
    m.added = added;
    m.kv_keys = mirror_.size();
    m.kv_digest = digest();
    if (what == fate::sent) messages_.publish(messages_.names().kv_delta(model_, instance_), encode(m));
  }
  /// The engine was replaced by a new process.
  void new_engine() {
    {
      const std::lock_guard lock(guard_);
      ++engine_epoch_;
    }
    change({}, {}, fate::sent, true);
  }
  /// From now on it does not answer snapshot requests.
  void refuse_snapshots() {
    const std::lock_guard lock(guard_);
    answers_ = false;
  }
  /// This agent was: nothing is known, a larger epoch.
  void restart() {
    const std::lock_guard lock(guard_);
    ++epoch_;
    sequence_ = announced_ = loads_ = 0;
    mirror_.clear();
  }

  std::uint64_t sequence() {
    const std::lock_guard lock(guard_);
    return sequence_;
  }
  std::uint64_t keys() {
    const std::lock_guard lock(guard_);
    return mirror_.size();
  }
  unsigned snapshots() {
    const std::lock_guard lock(guard_);
    return snapshots_;
  }

 private:
  static constexpr std::size_t keys_a_chunk = 30'000;

  std::unique_ptr<fb::OriginT> origin(std::uint64_t sequence) const {
    auto o = std::make_unique<fb::OriginT>();
    o->id = "agent/" + instance_;
    o->epoch = epoch_;
    o->sequence = sequence;
    return o;
  }
  std::uint64_t digest() const {
    std::uint64_t x = 0;
    for (const auto k : mirror_) x ^= k;
    return x;
  }
  void answer(const std::string& to) {
    const std::lock_guard lock(guard_);
    if (!answers_) return;
    ++snapshots_;
    const std::vector<std::uint64_t> all(mirror_.begin(), mirror_.end());
    const auto total = std::max<std::size_t>(1, (all.size() + keys_a_chunk - 1) / keys_a_chunk);
    for (std::size_t i = 0; i < total; ++i) {
      fb::KvSnapshotChunkT m;
      m.origin = origin(i + 1);
      m.model = model_;
      m.instance = instance_;
      m.engine_epoch = engine_epoch_;
      m.as_of = sequence_;
      m.index = static_cast<std::uint32_t>(i);
      m.total = static_cast<std::uint32_t>(total);
      m.keys.assign(all.begin() + static_cast<std::ptrdiff_t>(i * keys_a_chunk),
                    all.begin() + static_cast<std::ptrdiff_t>(std::min(all.size(), (i + 1) * keys_a_chunk)));
      messages_.reply_to(to, message_traits<fb::KvSnapshotChunk>::root, encode(m));
    }
  }

  bus& messages_;
  std::string model_;
  std::string instance_;
  std::mutex guard_;
  std::uint64_t epoch_;
  std::uint64_t engine_epoch_ = 77;
  std::uint64_t sequence_ = 0;
  std::uint64_t announced_ = 0;
  std::uint64_t loads_ = 0;
  unsigned snapshots_ = 0;
  bool answers_ = true;
  std::set<std::uint64_t> mirror_;
  subscription requests_;
};

}  // namespace infernex::test
