// A source against an agent over a channel that drops, doubles and lets one kind of message overtake the
// other. Whatever happens: a source that says it is exact is; blocks of an engine process known to be gone
// are gone; and when the channel is sound again, the index becomes exact.

#include <deque>
#include <map>
#include <random>
#include <set>

#include <doctest/doctest.h>

#include "tests/unit/indexer/agent_model.hpp"

namespace infernex::indexer {
namespace {

using namespace std::chrono_literals;
using key_set = std::set<block_key>;

constexpr block_key keys_an_engine = 24;

struct world {
  std::mt19937 random;
  unsigned loss_percent;

  kv_index index;
  sync_settings settings;
  sync_counters counters;
  time_point now{std::chrono::hours(1)};
  source of;
  kv_index::reader reader;

  agent_model agent;
  std::uint64_t engines = 1;  // number of the present engine process; its keys follow from it
  std::map<std::uint64_t, std::uint64_t> number_of_epoch;
  std::map<std::pair<std::uint64_t, std::uint64_t>, key_set> history;  // (epoch, sequence) -> mirror

  std::deque<owned_delta> deltas;
  std::deque<announcement> announcements;
  std::deque<owned_chunk> chunks;
  std::uint64_t last_epoch_heard = 0;
  std::uint64_t newest_engine_heard = 0;
  unsigned exact_moments = 0;

  world(unsigned seed, unsigned loss)
      : random(seed),
        loss_percent(loss),
        of((index.add_instance("e"), index), "e", settings, counters, now),
        reader(index) {
    agent.engine_epoch = epoch_of_engine();
    remember();
  }

  unsigned pick(unsigned n) { return random() % n; }
  bool lost() { return pick(100) < loss_percent; }
  /// Values without order: only the sequence tells which engine is newer.
  std::uint64_t epoch_of_engine() {
    const auto value = 1 + random() % 1'000'000;
    number_of_epoch[value] = engines;
    return value;
  }
  void remember() { history[{agent.epoch, agent.sequence}] = agent.mirror; }
  std::vector<block_key> some_keys(unsigned most) {
    std::vector<block_key> keys(pick(most + 1));
    for (auto& k : keys) k = engines * keys_an_engine + pick(keys_an_engine);
    return keys;
  }
  void send(owned_delta d) {
    remember();
    if (!lost()) deltas.push_back(d);
    if (lost()) deltas.push_back(std::move(d));
  }
  void announce() {
    const auto a = agent.announce();
    if (!lost()) announcements.push_back(a);
    if (lost()) announcements.push_back(a);
  }

  key_set held() {
    key_set all;
    for (block_key k = keys_an_engine; k < (engines + 1) * keys_an_engine; ++k)
      if (!reader.lookup({&k, 1}).empty()) all.insert(k);
    return all;
  }

  void heard(std::uint64_t epoch, std::optional<std::uint64_t> engine_epoch) {
    if (epoch < last_epoch_heard) return;
    if (epoch > last_epoch_heard) newest_engine_heard = 0;
    last_epoch_heard = epoch;
    if (engine_epoch) newest_engine_heard = std::max(newest_engine_heard, number_of_epoch[*engine_epoch]);
  }
  void deliver_delta() {
    if (deltas.empty()) return;
    const auto d = deltas.front();
    deltas.pop_front();
    // While a snapshot is awaited, deltas are kept unread: what they say of the engine is not heard yet.
    const auto before = of.sequence();
    of.on_delta(d.get(), now);
    if (of.sequence() != before && of.sequence() >= d.head.sequence) heard(d.head.epoch, d.head.engine_epoch);
  }
  void deliver_announcement() {
    if (announcements.empty()) return;
    const auto a = announcements.front();
    announcements.pop_front();
    of.on_announce(a, now);
    heard(a.epoch, a.engine_epoch);
  }
  void deliver_chunk() {
    if (chunks.empty()) return;
    const auto at = chunks.begin() + pick(static_cast<unsigned>(std::min<std::size_t>(3, chunks.size())));
    of.on_chunk(at->get(), now);
    chunks.erase(at);
  }
  void serve_request() {
    if (!of.take_request(now) || lost()) return;
    for (auto& chunk : agent.snapshot(1 + pick(8)))
      if (!lost()) chunks.push_back(std::move(chunk));
  }

  void check() {
    const auto now_held = held();
    if (of.exact(now)) {
      ++exact_moments;
      const auto it = history.find({of.epoch(), of.sequence()});
      REQUIRE(it != history.end());
      REQUIRE(now_held == it->second);
    }
    if (!now_held.empty()) REQUIRE(*now_held.begin() / keys_an_engine >= newest_engine_heard);
  }

  void agent_step() {
    switch (pick(40)) {
      case 0:  // the agent dies and comes back; it replays its engine's events in a few deltas
        agent.restart();
        agent.engine_epoch = epoch_of_engine();
        remember();
        break;
      case 1:
      case 2:  // a new engine process
        ++engines;
        send(agent.new_engine(epoch_of_engine()));
        announce();
        break;
      case 3:
        agent.down = !agent.down;
        announce();
        break;
      case 4:
      case 5:
      case 6:
      case 7:
        announce();
        break;
      case 8:
        send(agent.change({}, some_keys(4), true));
        break;
      default:
        send(agent.change(some_keys(3), some_keys(5)));
    }
  }
};

TEST_CASE("exact under every order, loss and repetition; exact again when the channel is sound") {
  unsigned exact_moments = 0;
  std::uint64_t snapshots = 0;
  for (unsigned seed = 1; seed <= 150; ++seed) {
    CAPTURE(seed);
    world w(seed, seed % 3 == 0 ? 0 : seed % 3 == 1 ? 4 : 25);
    for (int step = 0; step < 400; ++step) {
      switch (w.pick(8)) {
        case 0:
        case 1:
          w.agent_step();
          break;
        case 2:
        case 3:
          w.deliver_delta();
          break;
        case 4:
          w.deliver_announcement();
          break;
        case 5:
          w.deliver_chunk();
          break;
        case 6:
          w.serve_request();
          break;
        default:
          w.now += std::chrono::milliseconds(w.pick(700));
          w.of.on_tick(w.now);
      }
      w.check();
    }
    // From here on nothing is lost, and the engine is up.
    w.loss_percent = 0;
    w.agent.down = false;
    for (int tenth = 0; tenth < 2'000; ++tenth) {
      if (tenth % 20 == 0) w.announce();
      while (!w.deltas.empty()) w.deliver_delta();
      while (!w.announcements.empty()) w.deliver_announcement();
      w.serve_request();
      while (!w.chunks.empty()) w.deliver_chunk();
      w.now += 100ms;
      w.of.on_tick(w.now);
    }
    w.check();
    REQUIRE(w.of.exact(w.now));
    REQUIRE(w.of.epoch() == w.agent.epoch);
    REQUIRE(w.of.sequence() == w.agent.sequence);
    REQUIRE(w.held() == w.agent.mirror);
    exact_moments += w.exact_moments;
    snapshots += w.counters.snapshots_applied;
  }
  // The run must have been worth its name.
  CHECK(exact_moments > 1'000);
  CHECK(snapshots > 100);
}

TEST_CASE("over a sound channel with orderly overtaking no snapshot is ever needed") {
  for (unsigned seed = 1; seed <= 20; ++seed) {
    CAPTURE(seed);
    world w(seed, 0);
    w.announce();
    w.deliver_announcement();
    for (int round = 0; round < 200; ++round) {
      // Announcements overtake deltas, but nothing is later than the patience.
      w.send(w.agent.change(w.some_keys(3), w.some_keys(5)));
      if (w.pick(4) == 0) w.announce();
      if (round == 100) w.send(w.agent.new_engine((++w.engines, w.epoch_of_engine())));
      while (!w.announcements.empty()) w.deliver_announcement();
      w.check();
      while (!w.deltas.empty()) w.deliver_delta();
      w.check();
      w.now += 100ms;
      w.of.on_tick(w.now);
      REQUIRE_FALSE(w.of.take_request(w.now));
    }
    CHECK(w.of.exact(w.now));
  }
}

}  // namespace
}  // namespace infernex::indexer
