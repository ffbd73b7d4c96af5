// link: infernex_indexer infernex_engine_core test_support
//
// A new indexer beside agents that hold ten million memberships: seconds from its start, with an empty index, to every
// source exact. The real things but for the engines: nats-server, agents' ledgers behind a bus in a process of their
// own, the indexer's actor with a bus in this one. MEMBERSHIPS and ENGINES change the numbers.

#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include <chrono>
#include <condition_variable>
#include <cstdlib>
#include <deque>
#include <functional>
#include <iostream>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <thread>
#include <vector>

#include "actors/engine/ledger.hpp"
#include "actors/indexer/actor.hpp"
#include "actors/runtime/caf.hpp"
#include "actors/runtime/log.hpp"
#include "actors/runtime/supervisor.hpp"
#include "tests/bench/support/report.hpp"
#include "tests/support/nats_server.hpp"

namespace {

using namespace infernex;
using namespace std::chrono_literals;
using steady = std::chrono::steady_clock;

constexpr std::uint32_t block_size = 16;
constexpr std::size_t chain_blocks = 64;
constexpr std::chrono::milliseconds announce_interval{2'000};

std::uint64_t number_from(const char* variable, std::uint64_t otherwise) {
  const auto* text = std::getenv(variable);
  return text && *text ? std::strtoull(text, nullptr, 10) : otherwise;
}

std::unique_ptr<bus> connect(const std::string& url, metrics_registry& metrics) {
  bus_settings how;
  how.url = url;
  auto made = bus::connect(how, metrics);
  if (!made) {
    std::cerr << render(made.failure()) << '\n';
    std::exit(1);
  }
  return *std::move(made);
}

/// An agent's ledger whose engine caches `blocks` blocks, every second chain of which all engines share.
std::unique_ptr<engine::ledger> filled_ledger(std::uint64_t number, std::uint64_t blocks) {
  engine::ledger_settings how;
  how.engine.instance = "engine-" + std::to_string(number);
  how.engine.model = "m";
  how.engine.url = "http://127.0.0.1:1";
  how.engine.kv_events = "tcp://127.0.0.1:1";
  how.agent_epoch = 1'000;
  auto book = std::make_unique<engine::ledger>(how);
  engine::probe_result ready;
  ready.health = {engine::probe_outcome::answered, 200, 1};
  book->on_probe(ready);
  for (std::uint64_t chain = 0; chain * chain_blocks < blocks; ++chain) {
    const auto prompt = chain % 2 ? (number + 1) << 32 | chain : chain;
    engine::stored_blocks stored;
    stored.block_size = block_size;
    const auto length = std::min<std::uint64_t>(chain_blocks, blocks - chain * chain_blocks);
    for (std::uint64_t b = 0; b < length; ++b) {
      stored.hashes.push_back((chain << 16) + b + 1);
      for (std::uint32_t t = 0; t < block_size; ++t)
        stored.tokens.push_back(static_cast<std::uint32_t>(t < 2 ? prompt >> 32 * t : b + t));
    }
    engine::event_batch group;
    group.generation = book->generation();
    group.batches.emplace_back().events.emplace_back(std::move(stored));
    group.health = fb::KvHealth::Live;
    book->on_events(group);
    if (chain % 64 == 0) book->take_deltas();
  }
  book->take_deltas();  // published long ago
  return book;
}

/// Threads that work off what the bus hands over, as an actor system does.
class workers {
 public:
  explicit workers(unsigned count) {
    for (unsigned i = 0; i < count; ++i)
      threads_.emplace_back([this] {
        for (;;) {
          std::unique_lock lock(guard_);
          more_.wait(lock, [this] { return !jobs_.empty(); });
          const auto job = std::move(jobs_.front());
          jobs_.pop_front();
          lock.unlock();
          job();
        }
      });
  }
  void run(std::function<void()> job) {
    const std::lock_guard lock(guard_);
    jobs_.push_back(std::move(job));
    more_.notify_one();
  }

 private:
  std::mutex guard_;
  std::condition_variable more_;
  std::deque<std::function<void()>> jobs_;
  std::vector<std::thread> threads_;
};

/// The agents' process: says so on `ready` when it can be asked, and ends with it.
[[noreturn]] void run_agents(const std::string& url, std::uint64_t engines, std::uint64_t memberships, int ready) {
  struct agent {
    std::mutex guard;
    std::unique_ptr<engine::ledger> book;
  };
  std::vector<std::unique_ptr<agent>> agents;
  for (std::uint64_t i = 0; i < engines; ++i) {
    agents.push_back(std::make_unique<agent>());
    agents.back()->book = filled_ledger(i, memberships * (i + 1) / engines - memberships * i / engines);
  }
  metrics_registry metrics;
  const auto messages = connect(url, metrics);
  workers pool(2);
  const auto announce = [&](agent& one) {
    const std::lock_guard lock(one.guard);
    const auto message = *one.book->announcement();
    messages->publish(messages->names().announce(message.model, message.instance), encode(message), lane::stream);
  };
  std::vector<subscription> open;
  for (auto& each : agents) {
    auto& one = *each;
    const auto instance = one.book->announcement()->instance;
    open.push_back(*messages->subscribe(
        messages->names().kv_snapshot("m", instance), {lane::rpc, {}, 16},
        [&](inbound<fb::KvSnapshotRequest>&& request) {
          pool.run([&one, &messages, asked = std::make_shared<inbound<fb::KvSnapshotRequest>>(std::move(request))] {
            const std::lock_guard lock(one.guard);
            for (const auto& chunk : one.book->snapshot())
              if (messages->reply(*asked, "KvSnapshotChunk", encode(chunk)) != errc::none)
                std::cerr << "a chunk could not be sent\n";
          });
        }));
    open.push_back(*messages->subscribe(messages->names().announce_request(), {lane::rpc, {}, 64},
                                        [&](inbound<fb::AnnounceRequest>&&) { pool.run([&] { announce(one); }); }));
  }
  if (::write(ready, "r", 1) != 1) ::_exit(1);
  for (;;) {
    std::this_thread::sleep_for(announce_interval);
    if (::getppid() == 1) ::_exit(0);
    for (auto& each : agents) announce(*each);
  }
}

struct figures {
  double exact_s = 0;
  std::uint64_t memberships = 0;
  std::uint64_t distinct_keys = 0;
  double index_mb = 0;
  std::uint64_t snapshots = 0;
};

/// One life of an indexer, from its connection to the bus on. Nothing: not exact within a minute.
std::optional<figures> restart(const std::string& url, std::uint64_t engines, std::uint64_t memberships) {
  metrics_registry metrics;
  const auto began = steady::now();
  const auto messages = connect(url, metrics);
  actor_config config;
  caf::actor_system system{config};
  runtime process{system, *messages, metrics, "bench", 1};
  indexer::settings how;
  auto facts = std::make_shared<indexer::indexer_facts>(process, how, std::make_shared<indexer::index_set>(how.index));
  const auto actor = indexer::spawn_indexer_actor(process, how, facts);
  published<indexer::index_page>::reader pages(facts->page);
  std::optional<figures> out;
  while (!out && steady::now() - began < 60s) {
    std::this_thread::sleep_for(5ms);
    const auto* page = pages.get();
    if (!page || page->sources.size() != engines) continue;
    figures found;
    bool exact = true;
    for (const auto& source : page->sources) {
      exact = exact && source.exact;
      found.memberships += source.keys;
    }
    if (!exact || found.memberships != memberships) continue;
    found.exact_s = std::chrono::duration<double>(steady::now() - began).count();
    found.distinct_keys = page->models.front().distinct_keys;
    found.index_mb = static_cast<double>(page->models.front().bytes) / 1e6;
    out = found;
  }
  stop_and_wait(system, caf::actor_cast<caf::strong_actor_ptr>(actor), 5s);
  if (out) out->snapshots = facts->sources.counters().snapshots_requested;
  messages->close(1s);
  return out;
}

}  // namespace

int main(int argc, char** argv) {
  const auto engines = number_from("ENGINES", 64);
  const auto memberships = number_from("MEMBERSHIPS", 10'000'000);
  bench::report report("index_restart", {"engines", "round", "memberships", "distinct_keys", "exact_s",
                                         "million_memberships_s", "snapshots_asked", "index_mb"});
  log::configure(log::level::warn, "bench");
  test::nats_server server;
  int ends[2];
  if (::pipe(ends) != 0) return 1;
  const auto agents = ::fork();
  if (agents == 0) run_agents(server.url(), engines, memberships, ends[1]);
  ::close(ends[1]);
  std::cout << "filling " << engines << " agents' mirrors with " << memberships << " memberships" << std::endl;
  char ready = 0;
  bool all_well = agents > 0 && ::read(ends[0], &ready, 1) == 1;
  std::vector<double> seconds;
  for (int round = 1; all_well && round <= 5; ++round) {
    const auto found = restart(server.url(), engines, memberships);
    all_well = found.has_value();
    if (!found) break;
    report.row(engines, round, found->memberships, found->distinct_keys, found->exact_s,
               static_cast<double>(found->memberships) / found->exact_s / 1e6, found->snapshots, found->index_mb);
    seconds.push_back(found->exact_s);
  }
  if (agents > 0) {
    ::kill(agents, SIGKILL);
    ::waitpid(agents, nullptr, 0);
  }
  if (!all_well) {
    std::cerr << "the index did not become exact\n";
    return 1;
  }
  report.fact("memberships", memberships);
  report.fact("exact_s_median", bench::percentile(seconds, 0.5));
  report.fact("exact_s_worst", bench::percentile(seconds, 1.0));
  return report.publish(bench::report_folder(argc, argv)) ? 0 : 1;
}
