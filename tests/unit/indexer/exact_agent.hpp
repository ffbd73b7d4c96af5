#pragma once

#include <chrono>
#include <deque>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include <xxhash.h>

#include "actors/engine/kv_event_decoder.hpp"
#include "actors/engine/ledger.hpp"
#include "actors/engine/source_state.hpp"
#include "messages/view.hpp"
#include "tests/unit/indexer/exact_engine.hpp"

namespace infernex::test {

using time_point = std::chrono::steady_clock::time_point;

/// What an agent says on the bus, as bytes.
struct bus_message {
  enum class kind : std::uint8_t { announcement, delta, chunk } what = kind::delta;
  std::shared_ptr<const flatbuffers::DetachedBuffer> bytes;
};

template <class Object>
bus_message on_the_bus(bus_message::kind what, const Object& object) {
  return {what, std::make_shared<const flatbuffers::DetachedBuffer>(encode(object))};
}

/// An agent as its parts make it, sockets, threads and clock left out: kv_listener's use of source_state and decoder,
/// the actor's use of the ledger. Its engine is reached through two sockets that the script fills and breaks.
class scripted_agent {
 public:
  using publisher = std::function<void(const bus_message&)>;

  scripted_agent(scripted_engine& of, std::uint64_t epoch, std::size_t message_keys, publisher publish, time_point now)
      : engine_(of),
        publish_(std::move(publish)),
        book_(settings_of(of.shape(), epoch, message_keys)),
        stream_({}, of.shape().can_replay) {
    stream_.start(now);
  }

  // --- the live socket ---
  /// `place`: how many of the batches that wait it overtakes.
  void receive(const wire_event& batch, std::size_t place = 0) {
    live_.insert(live_.end() - static_cast<std::ptrdiff_t>(std::min(place, live_.size())), batch);
  }
  std::size_t waiting() const { return live_.size(); }
  /// The replay under way will never be answered.
  void break_replay() {
    if (replay_) replay_->broken = true;
  }

  void probe(time_point now) {
    engine::probe_result found;
    found.at = now;
    found.health.wall_ns = 1'700'000'000'000'000'000 + static_cast<std::uint64_t>(now.time_since_epoch().count());
    found.health.outcome = engine_.up() ? engine::probe_outcome::answered : engine::probe_outcome::refused;
    if (engine_.up()) {
      found.health.status = 200;
      found.metrics.emplace().process_start_seconds = 1.7e9 + static_cast<double>(engine_.life());
    }
    const auto orders = book_.on_probe(found);
    if (orders.resync) {
      followed_ = engine_.life();
      begin_anew(now);
    }
    if (orders.announce) announce();
  }

  /// One turn of the listener's loop.
  void listen(time_point now) {
    read_replay(now);
    if (stream_.on_tick(now)) replay_.reset();
    if (const auto from = stream_.begin_replay(now)) {
      replay_.emplace();
      replay_->broken = !engine_.up();
      for (const auto& each : engine_.kept())
        if (each.sequence >= *from) replay_->batches.push_back(each);
    }
    read_live(now);
    flush();
  }
  /// The actor handles one group that the listener has handed over. False: there is none.
  bool handle_group() {
    if (mailbox_.empty()) return false;
    const auto group = std::move(mailbox_.front());
    mailbox_.pop_front();
    const bool changed = book_.on_events(group);
    publish_deltas();
    if (changed) announce();
    return true;
  }
  void announce() {
    publish_deltas();
    if (const auto message = book_.announcement()) publish_(on_the_bus(bus_message::kind::announcement, *message));
  }
  std::vector<bus_message> answer_snapshot() {
    publish_deltas();
    std::vector<bus_message> parts;
    for (const auto& chunk : book_.snapshot()) parts.push_back(on_the_bus(bus_message::kind::chunk, chunk));
    return parts;
  }

  // --- how it stands ---
  const engine::ledger& book() const { return book_; }
  std::uint64_t delta_sequence() const { return delta_sequence_; }
  /// It has handled everything the engine has published.
  bool caught_up() const {
    return mailbox_.empty() && stream_.reads_live() && stream_.caught_up() && live_.empty() && !held_ &&
           book_.engine().state() == fb::EngineState::Ready && followed_ == engine_.life() &&
           stream_.last_sequence().value_or(-1) + 1 == engine_.next_sequence();
  }
  std::set<membership> mirror() {
    std::set<membership> all;
    for (const auto& chunk : book_.snapshot())
      for (const auto key : chunk.keys) all.emplace(chunk.tier, key);
    return all;
  }
  const engine::source_state& stream() const { return stream_; }

 private:
  struct replay {
    std::deque<wire_event> batches;
    bool broken = false;
  };

  static engine::ledger_settings settings_of(const engine_shape& shape, std::uint64_t epoch, std::size_t message_keys) {
    engine::ledger_settings s;
    s.engine.instance = shape.instance;
    s.engine.model = shape.model;
    s.engine.url = "http://" + shape.instance;
    s.engine.kv_events = "tcp://" + shape.instance;
    if (shape.canonical != shape.block_size) s.engine.block_size = shape.canonical;
    s.agent_epoch = epoch;
    s.message_keys = message_keys;
    return s;
  }

  /// New sockets: what waited in the old ones is gone.
  void begin_anew(time_point now) {
    listening_ = book_.generation();
    live_.clear();
    held_.reset();
    replay_.reset();
    group_ = {};
    group_.clear_first = std::exchange(reopen_, false);
    reported_.reset();
    stream_.start(now);
  }
  void forget() {
    group_ = {};
    group_.clear_first = true;
  }
  void act(engine::batch_verdict verdict, const wire_event& batch) {
    using v = engine::batch_verdict;
    if (verdict == v::clear_and_apply || verdict == v::clear_and_drop || verdict == v::clear_and_hold) forget();
    if (verdict == v::apply || verdict == v::clear_and_apply)
      group_.batches.push_back(*engine::decode_kv_events(batch.payload));
    if (verdict == v::hold || verdict == v::clear_and_hold) held_ = batch;
    if (verdict == v::renew) reopen_ = true;
  }
  static std::uint64_t fingerprint(const wire_event& batch) {
    return XXH3_64bits(batch.payload.data(), batch.payload.size());
  }
  void read_replay(time_point now) {
    if (!replay_ || replay_->broken) return;
    for (int most = 4; most > 0 && !replay_->batches.empty(); --most) {
      const auto next = std::move(replay_->batches.front());
      replay_->batches.pop_front();
      act(stream_.on_replayed(next.sequence, fingerprint(next), now), next);
    }
    if (!replay_->batches.empty()) return;
    replay_.reset();
    if (stream_.on_replay_end(now)) forget();
  }
  void read_live(time_point now) {
    if (held_ && stream_.reads_live()) {
      const auto again = *std::exchange(held_, std::nullopt);
      act(stream_.on_live(again.sequence, fingerprint(again), now), again);
    }
    while (!held_ && !reopen_ && stream_.reads_live() && !live_.empty()) {
      const auto next = std::move(live_.front());
      live_.pop_front();
      act(stream_.on_live(next.sequence, fingerprint(next), now), next);
    }
    if (reopen_) begin_anew(now);
  }
  fb::KvHealth health() const {
    if (!stream_.reads_live()) return fb::KvHealth::Replaying;
    if (stream_.partial()) return fb::KvHealth::Partial;
    return stream_.caught_up() ? fb::KvHealth::Live : fb::KvHealth::Replaying;
  }
  void flush() {
    const auto now = stream_.state();
    if (group_.batches.empty() && !group_.clear_first && reported_ == now) return;
    reported_ = group_.stream = now;
    group_.health = health();
    group_.generation = listening_;
    group_.engine_sequence = stream_.last_sequence();
    group_.totals = stream_.totals();
    mailbox_.push_back(std::exchange(group_, {}));
  }
  void publish_deltas() {
    for (const auto& delta : book_.take_deltas()) {
      delta_sequence_ = delta.origin->sequence;
      publish_(on_the_bus(bus_message::kind::delta, delta));
    }
  }

  scripted_engine& engine_;
  publisher publish_;
  engine::ledger book_;
  std::uint64_t delta_sequence_ = 0;
  std::uint64_t listening_ = 0;
  std::uint64_t followed_ = 0;  // life of the engine that the last probe found

  engine::source_state stream_;
  std::deque<wire_event> live_;
  std::optional<wire_event> held_;
  std::optional<replay> replay_;
  bool reopen_ = false;
  std::optional<engine::stream_state> reported_;
  engine::event_batch group_;
  std::deque<engine::event_batch> mailbox_;
};

}  // namespace infernex::test
