// link: infernex_router infernex_indexer test_support
//
// A RouteQuery over the bus, from its publish to its verified answer: gateway's side, router and indexer each in a
// process of its own, nats-server between them. 16 engines that cache parts of the prompts, prompts of 100 blocks,
// strategy kv-aware, so that the indexer is asked for every query. Alone: one after the other. Then at RATE queries a
// second (10,000), for SECONDS (10), each millisecond's queries in one message as a gateway sends them; and each in a
// message of its own. Beside them the limit: an echo of the same bytes by the router's process, which decides nothing.
// Writes build/bench/route_query.json.

#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include <atomic>
#include <chrono>
#include <cstdlib>
#include <iostream>
#include <memory>
#include <mutex>
#include <string>
#include <thread>
#include <vector>

#include "actors/indexer/actor.hpp"
#include "actors/router/actor.hpp"
#include "actors/runtime/caf.hpp"
#include "actors/runtime/log.hpp"
#include "tests/bench/support/report.hpp"
#include "tests/component/indexer/fake_agent.hpp"
#include "tests/support/nats_server.hpp"

namespace {

using namespace infernex;
using namespace std::chrono_literals;
using steady = std::chrono::steady_clock;

constexpr std::uint32_t engines = 16;
constexpr std::uint32_t prompts = 64;
constexpr std::uint64_t prompt_blocks = 100;
constexpr const char* echo_subject = "bench.echo";

double number_from(const char* variable, double otherwise) {
  const auto* text = std::getenv(variable);
  return text && *text ? std::atof(text) : otherwise;
}

std::unique_ptr<bus> connect(const std::string& url, metrics_registry& metrics) {
  bus_settings how;
  how.url = url;
  auto made = bus::connect(how, metrics);
  if (!made) {
    std::cerr << render(made.failure()) << '\n';
    ::_exit(1);
  }
  return *std::move(made);
}

/// A role in a process of its own, until the benchmark ends it.
template <class Start>
pid_t in_own_process(const std::string& url, Start start) {
  const auto child = ::fork();
  if (child != 0) return child;
  metrics_registry metrics;
  const auto messages = connect(url, metrics);
  actor_config config;
  caf::actor_system system{config};
  runtime process{system, *messages, metrics, "bench-" + std::to_string(::getpid()), 1};
  const auto running = start(process);
  for (;;) {
    std::this_thread::sleep_for(200ms);
    if (::getppid() == 1) ::_exit(0);
  }
}

auto start_router(runtime& process) {
  auto& messages = process.messages;
  auto echo = messages.subscribe_bytes(echo_subject, {lane::rpc, {}, 8'192}, [&messages](inbound_bytes&& in) {
    messages.publish_bytes(in.reply_to, "application/octet-stream", in.data.bytes(), lane::rpc);
  });
  auto role = router::start(process, {});
  return std::make_pair(std::move(echo), std::move(role));
}

/// Prompt `n` begins like every fourth other one.
std::uint64_t key_of(std::uint64_t n, std::uint64_t block) {
  return ((block < prompt_blocks / 2 ? n % 4 : n) + 1) << 32 | (block + 1);
}

flatbuffers::DetachedBuffer query_of(std::size_t items, std::uint64_t& made) {
  fb::RouteQueryT query;
  query.model = "m";
  for (std::size_t i = 0; i < items; ++i) {
    auto& item = *query.items.emplace_back(std::make_unique<fb::RouteItemT>());
    const auto n = ++made;
    item.request_id = "r" + std::to_string(n);
    item.key_mode = fb::KeyMode::Token;
    item.block_size = 16;
    item.prompt_tokens = prompt_blocks * 16 + 1;
    for (std::uint64_t b = 0; b < prompt_blocks; ++b) item.keys.push_back(key_of(n % prompts, b));
  }
  return encode(query);
}

/// What came back of the queries sent, by any thread.
class answers {
 public:
  void took(std::size_t items, steady::time_point sent) {
    const auto us = std::chrono::duration<double, std::micro>(steady::now() - sent).count();
    const std::lock_guard lock(guard_);
    us_.insert(us_.end(), items, us);
  }
  void lost(std::size_t items) { lost_ += items; }
  std::size_t all() {
    const std::lock_guard lock(guard_);
    return us_.size() + lost_;
  }
  std::size_t lost() const { return lost_; }
  std::vector<double> take() {
    const std::lock_guard lock(guard_);
    return std::exchange(us_, {});
  }

 private:
  std::mutex guard_;
  std::vector<double> us_;
  std::atomic<std::size_t> lost_{0};
};

class asker {
 public:
  asker(bus& messages, bool echo) : messages_(messages), echo_(echo) {}

  void send(std::size_t items) {
    const auto query = query_of(items, made_);
    const auto sent = steady::now();
    if (echo_) {
      messages_.request_bytes(
          echo_subject, "application/octet-stream", bytes_of(query), 2s,
          [this, items, sent](result<inbound_bytes>&& answer) { answer ? seen.took(items, sent) : seen.lost(items); });
    } else {
      messages_.request<fb::RouteDecision>(messages_.names().route_query("m"), query, 2s,
                                           [this, items, sent](result<view<fb::RouteDecision>>&& answer) {
                                             placed(answer) == items ? seen.took(items, sent) : seen.lost(items);
                                           });
    }
  }
  /// As a gateway does: these requests are over, which ends their reservations.
  void finish() {
    fb::RequestLifeT life;
    life.origin = std::make_unique<fb::OriginT>();
    life.origin->id = "gateway/bench";
    life.origin->epoch = 1;
    life.origin->sequence = ++lives_;
    life.model = "m";
    for (; over_ < made_; ++over_) {
      auto& one = *life.finished.emplace_back(std::make_unique<fb::FinishedT>());
      one.request_id = "r" + std::to_string(over_ + 1);
      one.status = 200;
    }
    messages_.publish(messages_.names().request_life("m"), encode(life));
  }
  std::uint64_t made() const { return made_; }

  answers seen;

 private:
  static std::size_t placed(const result<view<fb::RouteDecision>>& answer) {
    std::size_t count = 0;
    if (answer && (*answer)->choices())
      for (const auto* choice : *(*answer)->choices())
        count += !text(choice->instance()).empty() && choice->index_used();
    return count;
  }

  bus& messages_;
  bool echo_;
  std::uint64_t made_ = 0;
  std::uint64_t over_ = 0;
  std::uint64_t lives_ = 0;
};

void wait_for_all(asker& of) {
  for (int i = 0; i < 3'000 && of.seen.all() < of.made(); ++i) std::this_thread::sleep_for(1ms);
}

void one_by_one(asker& of, std::size_t count) {
  for (std::size_t i = 0; i < count; ++i) {
    of.send(1);
    while (of.seen.all() < of.made()) std::this_thread::yield();
    if (i % 20 == 0) of.finish();
  }
}

void at_rate(asker& of, double rate, double seconds, bool batched) {
  const auto began = steady::now();
  const auto each_ms = static_cast<std::size_t>(rate / 1'000);
  for (int ms = 0; ms < seconds * 1'000; ++ms) {
    std::this_thread::sleep_until(began + std::chrono::milliseconds(ms));
    if (batched) {
      of.send(each_ms);
    } else {
      for (std::size_t i = 0; i < each_ms; ++i) of.send(1);
    }
    if (ms % 20 == 0) of.finish();
  }
  wait_for_all(of);
}

/// Until the router answers by the index for all engines.
bool wait_until_ready(bus& messages) {
  for (int i = 0; i < 200; ++i) {
    asker probe(messages, false);
    probe.send(1);
    wait_for_all(probe);
    if (probe.seen.lost() == 0) return true;
    std::this_thread::sleep_for(50ms);
  }
  return false;
}

}  // namespace

int main(int argc, char** argv) {
  log::configure(log::level::error, "bench");
  test::nats_server server;
  const auto router = in_own_process(server.url(), start_router);
  const auto indexer = in_own_process(server.url(), [](runtime& process) {
    const indexer::settings how;
    return indexer::start(process, how, std::make_shared<indexer::index_set>(how.index));
  });

  metrics_registry metrics;
  const auto messages = connect(server.url(), metrics);
  std::vector<std::unique_ptr<test::fake_agent>> agents;
  for (std::uint32_t i = 0; i < engines; ++i)
    agents.push_back(std::make_unique<test::fake_agent>(*messages, "m", "engine-" + std::to_string(i)));
  std::atomic<bool> ends{false};
  std::thread tellers([&] {
    for (std::uint32_t i = 0; i < engines; ++i) {
      std::vector<std::uint64_t> keys;
      for (std::uint64_t n = i % 4; n < prompts; n += 4)
        for (std::uint64_t b = 0; b < prompt_blocks - i; ++b) keys.push_back(key_of(n, b));
      std::sort(keys.begin(), keys.end());
      keys.erase(std::unique(keys.begin(), keys.end()), keys.end());
      agents[i]->change({}, keys);
    }
    while (!ends) {
      for (auto& each : agents) each->announce(), each->load(0, 0.3);
      std::this_thread::sleep_for(500ms);
    }
  });
  bench::report report("route_query",
                       {"what", "queries_per_s", "items_a_message", "answered", "lost", "p50_us", "p90_us", "p99_us"});
  const bool ready = wait_until_ready(*messages);
  const auto rate = number_from("RATE", 10'000);
  const auto seconds = number_from("SECONDS", 10);
  const auto measure = [&](const std::string& what, bool echo, double per_second, std::size_t items, auto run) {
    asker by(*messages, echo);
    run(by);
    auto us = by.seen.take();
    const auto answered = us.size();
    const auto p50 = bench::percentile(us, 0.5), p90 = bench::percentile(us, 0.9), p99 = bench::percentile(us, 0.99);
    report.row(what, per_second, items, answered, by.seen.lost(), p50, p90, p99);
    for (const auto& [name, value] : {std::pair{"p50_us", p50}, {"p99_us", p99}})
      report.fact(what + "_" + (per_second == 0 ? "alone" : items > 1 ? "batched" : "single") + "." + name, value);
  };
  for (const bool echo : {true, false}) {
    if (!ready) break;
    const std::string what = echo ? "echo" : "route_query";
    measure(what, echo, 0, 1, [](asker& by) { one_by_one(by, 5'000); });
    measure(what, echo, rate, static_cast<std::size_t>(rate / 1'000),
            [&](asker& by) { at_rate(by, rate, seconds, true); });
    measure(what, echo, rate, 1, [&](asker& by) { at_rate(by, rate, seconds, false); });
  }
  ends = true;
  tellers.join();
  for (const auto child : {router, indexer}) {
    ::kill(child, SIGKILL);
    ::waitpid(child, nullptr, 0);
  }
  if (!ready) {
    std::cerr << "the router did not get to know the engines\n";
    return 1;
  }
  return report.publish(bench::report_folder(argc, argv)) ? 0 : 1;
}
