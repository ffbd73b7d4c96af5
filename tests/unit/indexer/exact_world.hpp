#pragma once

#include <deque>
#include <map>
#include <memory>
#include <set>
#include <string>
#include <vector>

#include "actors/indexer/tracker.hpp"
#include "tests/unit/indexer/exact_agent.hpp"

// Engines, their agents, indexers, and what connects them: everything may be lost, doubled, overtaken or late until
// the world is told to be sound.

namespace infernex::test {

/// How bad the connections are, in percent of what is sent.
struct faults {
  unsigned loss = 0;
  unsigned doubling = 0;
  unsigned overtaking = 0;
};

template <class Message>
void send(std::deque<Message>& over, const Message& message, const faults& bad, dice& random) {
  if (random.percent(bad.loss)) return;
  const auto place = random.percent(bad.overtaking) ? random.below(std::min<std::size_t>(4, over.size() + 1)) : 0;
  over.insert(over.end() - static_cast<std::ptrdiff_t>(place), message);
  if (random.percent(bad.doubling)) over.push_back(message);
}

/// A replica of the indexer without its shell.
class scripted_indexer {
 public:
  scripted_indexer() : indexes(std::make_shared<indexer::index_set>()), sources({}, indexes) {}

  std::shared_ptr<indexer::index_set> indexes;
  indexer::tracker sources;
  bool connected = true;
  std::deque<bus_message> inbox;

  indexer::tracker::requests deliver(const bus_message& message, time_point now) {
    const auto bytes = chunk::copy_of(bytes_of(*message.bytes));
    switch (message.what) {
      case bus_message::kind::announcement:
        return sources.on_announce(**view<fb::EngineAnnounce>::verify(bytes), now);
      case bus_message::kind::delta:
        return sources.on_delta(**view<fb::KvDelta>::verify(bytes), now);
      case bus_message::kind::chunk:
        return sources.on_chunk(**view<fb::KvSnapshotChunk>::verify(bytes), now);
    }
    return {};
  }
  std::set<engine::block_key> keys(const engine_shape& of) const {
    std::set<engine::block_key> all;
    const auto index = indexes->find(of.model);
    if (!index) return all;
    indexer::kv_index::reader reader(*index);
    for (std::uint32_t part = 0; part < indexer::kv_index::key_parts; ++part)
      reader.each_key(of.instance, part, [&all](engine::block_key key) { all.insert(key); });
    return all;
  }
};

class scripted_world {
 public:
  struct member {
    std::unique_ptr<scripted_engine> engine;
    std::unique_ptr<scripted_agent> agent;
    std::uint64_t epoch = 0;
    std::size_t message_keys = 0;
  };

  explicit scripted_world(std::uint64_t seed) : random_(seed) {
    static constexpr std::array<faults, 4> qualities{{{0, 0, 0}, {5, 5, 5}, {20, 10, 20}, {0, 30, 40}}};
    bad_ = qualities[random_.below(qualities.size())];
    for (std::size_t i = 0, count = 1 + random_.below(4); i < count; ++i) members_.push_back(make_member(i));
    indexers_.push_back(std::make_unique<scripted_indexer>());
  }

  void step() {
    auto& one = members_[random_.below(members_.size())];
    switch (random_.below(26)) {
      case 0:
        return rare(one);
      case 1:
      case 2:
        return one.agent->probe(now_);
      case 3:
        return one.agent->announce();
      case 4:
      case 5:
      case 6:
        return pass(std::chrono::milliseconds(random_.below(random_.one_in(10) ? 20'000 : 700)));
      case 7:
      case 8:
      case 9:
        one.agent->handle_group();
        return;
      case 10:
      case 11:
      case 12:
      case 13:
        return one.agent->listen(now_);
      case 14:
      case 15:
      case 16:
      case 17:
      case 18:
        return publish(one);
      default:
        return deliver(*indexers_[random_.below(indexers_.size())]);
    }
  }

  /// From here on nothing is lost and everything is up. True: every agent has come to the end of its engine's stream
  /// and every index is exact, within five minutes of the world's time.
  bool settle() {
    bad_ = {};
    if (indexers_.size() == 1) join();
    for (auto& each : indexers_) connect(*each, true);
    for (auto& one : members_) {
      if (!one.engine->up()) start(one);
      one.agent->break_replay();
    }
    for (int half_second = 0; half_second < 600; ++half_second) {
      for (auto& one : members_) {
        if (half_second == 3 && (!one.engine->shape().can_replay || random_.one_in(2))) publish(one);
        one.agent->probe(now_);
        if (half_second % 4 == 0) one.agent->announce();
        for (int turn = 0; turn < 4; ++turn) one.agent->listen(now_);
        while (one.agent->handle_group()) continue;
      }
      for (auto& each : indexers_)
        while (!each->inbox.empty()) deliver(*each);
      if (half_second > 4 && settled()) return true;
      pass(std::chrono::milliseconds(500));
    }
    return false;
  }

  std::vector<member>& members() { return members_; }
  const std::vector<std::unique_ptr<scripted_indexer>>& indexers() const { return indexers_; }
  dice& random() { return random_; }
  time_point now() const { return now_; }
  /// Of all indexers that were; restarted ones apart.
  std::uint64_t snapshots() const {
    std::uint64_t sum = 0;
    for (const auto& each : indexers_) sum += each->sources.counters().snapshots_applied;
    return sum;
  }

 private:
  member make_member(std::size_t number) {
    engine_shape shape;
    shape.instance = "e" + std::to_string(number);
    shape.model = random_.one_in(5) ? "n" : "m";
    shape.block_size = static_cast<std::uint32_t>(1 + random_.below(4));
    shape.canonical = random_.one_in(3) ? static_cast<std::uint32_t>(1 + random_.below(6)) : shape.block_size;
    shape.orderly = !random_.one_in(3);
    shape.lower_tiers = random_.one_in(3);
    shape.adapters = random_.one_in(3);
    shape.map_events = random_.one_in(2);
    shape.can_replay = !random_.one_in(8);
    shape.kept = random_.one_in(4) ? 1 + random_.below(8) : 10'000;
    member one;
    one.engine = std::make_unique<scripted_engine>(std::move(shape), random_);
    one.epoch = 1'000 + number;
    one.message_keys = random_.one_in(2) ? 1 + random_.below(8) : 60'000;
    // A late join: history that nobody was there to hear.
    for (auto early = random_.below(4); early > 0; --early) one.engine->publish();
    begin_agent(one);
    return one;
  }
  void begin_agent(member& one) {
    one.agent.reset();
    one.agent = std::make_unique<scripted_agent>(
        *one.engine, one.epoch, one.message_keys,
        [this](const bus_message& message) {
          for (auto& each : indexers_)
            if (each->connected) send(each->inbox, message, bad_, random_);
        },
        now_);
  }

  void publish(member& one) {
    if (!one.engine->up()) return;
    const auto& batch = one.engine->publish();
    if (random_.percent(bad_.loss)) return;
    one.agent->receive(batch, random_.percent(bad_.overtaking) ? random_.below(3) : 0);
    if (random_.percent(bad_.doubling)) one.agent->receive(batch);
  }
  void start(member& one) {
    one.engine->start();
    one.agent->break_replay();
  }
  void rare(member& one) {
    switch (random_.below(8)) {
      case 0:
        one.engine->kill();
        return one.agent->break_replay();
      case 1:
      case 2:
        return start(one);
      case 3:
        ++one.epoch;
        return begin_agent(one);
      case 4:
        return join();
      case 5:
        return connect(*indexers_[random_.below(indexers_.size())], random_.one_in(2));
      case 6:
        return one.agent->break_replay();
      default:
        return pass(std::chrono::seconds(random_.below(90)));
    }
  }
  /// A second indexer, or one in the place of another; it asks for announcements.
  void join() {
    auto fresh = std::make_unique<scripted_indexer>();
    if (indexers_.size() == 2) indexers_.erase(indexers_.begin() + static_cast<std::ptrdiff_t>(random_.below(2)));
    indexers_.push_back(std::move(fresh));
    for (auto& one : members_) one.agent->announce();
  }
  void connect(scripted_indexer& indexer, bool connected) {
    if (!connected) indexer.inbox.clear();
    const bool back = connected && !indexer.connected;
    indexer.connected = connected;
    ask(indexer, indexer.sources.on_bus(connected, now_));
    if (back)
      for (auto& one : members_) one.agent->announce();
  }
  void pass(std::chrono::milliseconds time) {
    now_ += time;
    for (auto& each : indexers_) ask(*each, each->sources.on_tick(now_));
  }
  void deliver(scripted_indexer& to) {
    if (to.inbox.empty()) return;
    const auto message = std::move(to.inbox.front());
    to.inbox.pop_front();
    ask(to, to.deliver(message, now_));
  }
  void ask(scripted_indexer& by, const indexer::tracker::requests& wanted) {
    for (const auto& request : wanted) {
      if (!by.connected || random_.percent(bad_.loss)) continue;
      for (auto& one : members_)
        if (one.engine->shape().instance == request.instance)
          for (const auto& part : one.agent->answer_snapshot()) send(by.inbox, part, bad_, random_);
    }
  }

  bool settled() const {
    for (const auto& one : members_) {
      if (!one.agent->caught_up()) return false;
      // What was lost only here is still to be had.
      if (one.engine->keeps_all() && one.agent->stream().partial()) return false;
    }
    for (const auto& each : indexers_) {
      const auto status = each->sources.status(now_);
      if (status.size() != members_.size()) return false;
      for (const auto& source : status)
        if (source.state != indexer::sync_state::exact || source.sequence != agent_of(source.instance).delta_sequence())
          return false;
    }
    return true;
  }
  const scripted_agent& agent_of(const std::string& instance) const {
    for (const auto& one : members_)
      if (one.engine->shape().instance == instance) return *one.agent;
    return *members_.front().agent;
  }

  dice random_;
  faults bad_;
  time_point now_{std::chrono::hours(1)};
  std::vector<std::unique_ptr<scripted_indexer>> indexers_;
  std::vector<member> members_;
};

}  // namespace infernex::test
