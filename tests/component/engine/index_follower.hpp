#pragma once

#include <algorithm>
#include <mutex>
#include <optional>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include <doctest/doctest.h>

#include "actors/runtime/bus.hpp"
#include "messages/kv_digest.hpp"

namespace infernex::test {

/// Follows an agent's messages as an indexer and a router do, and keeps what they say.
class index_follower {
 public:
  struct facts {
    fb::EngineAnnounceT announced;
    std::size_t announcements = 0;
    std::size_t loads = 0;
    fb::EngineLoadT load;
    std::set<std::uint64_t> keys;  // on the device
    std::set<std::pair<fb::KvTier, std::uint64_t>> elsewhere;
    bool closed = false;
    std::uint64_t sequence = 0;
    std::uint64_t figures_keys = 0;
    std::uint64_t figures_digest = 0;
    std::size_t deltas = 0;
    std::size_t clears = 0;
    bool in_order = true;
  };
  struct snapshot {
    std::set<std::uint64_t> keys;  // on the device
    std::set<std::pair<fb::KvTier, std::uint64_t>> elsewhere;
    bool closed = false;
    std::uint64_t as_of = 0;
    std::size_t chunks = 0;
    std::size_t largest = 0;
    bool complete = false;
  };

  explicit index_follower(bus& messages) : messages_(messages) {
    const subscribe_options many{lane::stream, {}, 10'000};
    deltas_ = taken(messages.subscribe(messages.names().any_kv_delta(), many,
                                       [this](inbound<fb::KvDelta>&& in) { follow(*in.message); }));
    announcements_ =
        taken(messages.subscribe(messages.names().any_announce(), many, [this](inbound<fb::EngineAnnounce>&& in) {
          const std::lock_guard lock(guard_);
          in.message->UnPackTo(&state_.announced);
          ++state_.announcements;
        }));
    loads_ = taken(messages.subscribe(messages.names().any_load(), many, [this](inbound<fb::EngineLoad>&& in) {
      const std::lock_guard lock(guard_);
      in.message->UnPackTo(&state_.load);
      ++state_.loads;
    }));
  }

  template <class Question>
  auto with(Question question) const {
    const std::lock_guard lock(guard_);
    return question(state_);
  }
  fb::EngineState state() const {
    return with([](const facts& f) { return f.announced.state; });
  }
  fb::KvHealth kv_health() const {
    return with([](const facts& f) { return f.announced.kv_health; });
  }
  std::set<std::uint64_t> keys() const {
    return with([](const facts& f) { return f.keys; });
  }
  /// The set is what the last delta and a following announcement say it is.
  bool exact() const {
    return with([](const facts& f) {
      std::uint64_t digest = 0;
      for (const auto key : f.keys) digest ^= key;
      for (const auto& [tier, key] : f.elsewhere) digest ^= digest_of(key, tier);
      return f.in_order && f.figures_keys == f.keys.size() + f.elsewhere.size() && f.figures_digest == digest;
    });
  }

  void ask_snapshot(const std::string& model, const std::string& instance) {
    {
      const std::lock_guard lock(guard_);
      snapshot_ = {};
    }
    const auto inbox = messages_.new_inbox();
    chunks_ = taken(messages_.subscribe(
        subject<fb::KvSnapshotChunk>{inbox}, {lane::rpc, {}, 1024}, [this](inbound<fb::KvSnapshotChunk>&& in) {
          const std::lock_guard lock(guard_);
          const auto tier = in.message->tier();
          for (const auto key : elements(in.message->keys())) {
            if (tier == fb::KvTier::Device)
              snapshot_.keys.insert(key);
            else
              snapshot_.elsewhere.emplace(tier, key);
          }
          snapshot_.closed = in.message->closed();
          snapshot_.as_of = in.message->as_of();
          snapshot_.largest = std::max(snapshot_.largest, in.message.data().bytes().size());
          snapshot_.complete = ++snapshot_.chunks == in.message->total();
        }));
    fb::KvSnapshotRequestT request;
    request.model = model;
    request.instance = instance;
    messages_.publish_request(messages_.names().kv_snapshot(model, instance), encode(request), inbox);
  }
  snapshot last_snapshot() const {
    const std::lock_guard lock(guard_);
    return snapshot_;
  }

 private:
  static subscription taken(result<subscription> made) {
    REQUIRE(made.ok());
    return *std::move(made);
  }

  void follow(const fb::KvDelta& delta) {
    const std::lock_guard lock(guard_);
    state_.in_order = state_.in_order && (delta.origin()->sequence() == state_.sequence + 1 || state_.deltas == 0);
    state_.sequence = delta.origin()->sequence();
    ++state_.deltas;
    if (delta.cleared()) {
      state_.keys.clear();
      state_.elsewhere.clear();
      ++state_.clears;
    }
    if (delta.tier() == fb::KvTier::Device) {
      for (const auto key : elements(delta.removed())) state_.keys.erase(key);
      for (const auto key : elements(delta.added())) state_.keys.insert(key);
    } else {
      for (const auto key : elements(delta.removed())) state_.elsewhere.erase({delta.tier(), key});
      for (const auto key : elements(delta.added())) state_.elsewhere.emplace(delta.tier(), key);
    }
    state_.closed = delta.closed();
    state_.figures_keys = delta.kv_keys();
    state_.figures_digest = delta.kv_digest();
  }

  bus& messages_;
  mutable std::mutex guard_;
  facts state_;
  snapshot snapshot_;
  subscription deltas_;
  subscription announcements_;
  subscription loads_;
  subscription chunks_;
};

}  // namespace infernex::test
