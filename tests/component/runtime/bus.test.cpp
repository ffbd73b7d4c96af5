#include "actors/runtime/bus.hpp"

#include <atomic>
#include <mutex>

#include <doctest/doctest.h>

#include "actors/runtime/log.hpp"
#include "actors/runtime/metrics.hpp"
#include "tests/support/nats_server.hpp"
#include "tests/support/wait.hpp"

using namespace infernex;
using namespace std::chrono_literals;
using test::eventually;

namespace {

struct fixture {
  test::nats_server server;
  metrics_registry metrics;
  std::unique_ptr<bus> messages = open();
  subjects names;

  fixture() { log::configure(log::level::off, "test"); }

  std::unique_ptr<bus> open() {
    bus_settings settings;
    settings.url = server.url();
    settings.reconnect_wait = 20ms;
    auto made = bus::connect(settings, metrics);
    REQUIRE(made);
    return *std::move(made);
  }
};

flatbuffers::DetachedBuffer delta(std::uint64_t sequence, std::size_t keys = 0) {
  fb::KvDeltaT d;
  d.origin = std::make_unique<fb::OriginT>();
  d.origin->sequence = sequence;
  d.added.assign(keys, 1);
  return encode(d);
}

flatbuffers::DetachedBuffer query() { return encode(fb::KvMatchQueryT{}); }

}  // namespace

TEST_CASE_FIXTURE(fixture, "messages arrive verified and in order; damaged ones are counted, the rest unharmed") {
  std::mutex guard;
  std::vector<std::uint64_t> seen;
  auto sub = messages->subscribe(names.any_kv_delta(), {}, [&](inbound<fb::KvDelta>&& in) {
    const std::lock_guard lock(guard);
    seen.push_back(in.message->origin()->sequence());
  });
  REQUIRE(sub);
  const auto to = names.kv_delta("m", "e");
  for (std::uint64_t i = 1; i <= 100; ++i) {
    CHECK(messages->publish(to, delta(i)) == errc::none);
    if (i == 50) {
      const auto whole = delta(999);
      CHECK(messages->publish_bytes(to.name, "x", bytes_of(whole).first(17), lane::stream) == errc::none);
    }
  }
  CHECK(eventually([&] {
    const std::lock_guard lock(guard);
    return seen.size() == 100;
  }));
  for (std::uint64_t i = 0; i < seen.size(); ++i) CHECK(seen[i] == i + 1);
  CHECK(metrics.render().find("infernex_bus_bad_messages_total 1") != std::string::npos);
}

TEST_CASE_FIXTURE(fixture, "over its credit a subscription drops messages and refuses requests, and counts both") {
  std::mutex guard;
  std::vector<inbound<fb::KvMatchQuery>> held;
  auto sub = messages->subscribe(names.any_kv_match(), {lane::rpc, "indexer", 2}, [&](inbound<fb::KvMatchQuery>&& in) {
    const std::lock_guard lock(guard);
    held.push_back(std::move(in));
  });
  REQUIRE(sub);
  std::atomic<int> overloaded{0};
  for (int i = 0; i < 5; ++i)
    messages->request<fb::KvMatchReply>(names.kv_match("m"), query(), 5s, [&](result<view<fb::KvMatchReply>> r) {
      if (!r && r.failure().code == errc::overloaded) ++overloaded;
    });
  CHECK(eventually([&] { return overloaded == 3; }));
  CHECK(sub->dropped() == 3);
  {
    const std::lock_guard lock(guard);
    CHECK(held.size() == 2);
    held.clear();  // gives the credit back
  }
  std::atomic<bool> answered{false};
  messages->request<fb::KvMatchReply>(names.kv_match("m"), query(), 5s,
                                      [&](result<view<fb::KvMatchReply>> r) { answered = r.ok(); });
  CHECK(eventually([&] {
    const std::lock_guard lock(guard);
    return held.size() == 1;
  }));
  {
    const std::lock_guard lock(guard);
    messages->reply(held[0], "KvMatchReply", encode(fb::KvMatchReplyT{}));
  }
  CHECK(eventually([&] { return answered.load(); }));
}

TEST_CASE_FIXTURE(fixture, "a request without responder, or without answer, ends with an error") {
  std::atomic<int> code{-1};
  const auto ask = [&](std::chrono::milliseconds timeout) {
    code = -1;
    messages->request<fb::KvMatchReply>(names.kv_match("m"), query(), timeout, [&](result<view<fb::KvMatchReply>> r) {
      code = r ? 0 : static_cast<int>(r.failure().code);
    });
  };
  ask(5s);
  CHECK(eventually([&] { return code == static_cast<int>(errc::unreachable); }, 2s));
  auto silent = messages->subscribe(names.any_kv_match(), {lane::rpc}, [](inbound<fb::KvMatchQuery>&&) {});
  REQUIRE(silent);
  ask(50ms);
  CHECK(eventually([&] { return code == static_cast<int>(errc::timed_out); }, 2s));
}

TEST_CASE_FIXTURE(fixture, "after a restart of nats-server subscriptions go on, and watchers are told") {
  std::atomic<int> downs{0}, ups{0}, got{0};
  auto watch = messages->watch_connection([&](bool up) { ++(up ? ups : downs); });
  CHECK(ups == 1);
  auto sub = messages->subscribe(names.any_kv_delta(), {}, [&](inbound<fb::KvDelta>&&) { ++got; });
  REQUIRE(sub);
  server.kill();
  CHECK(eventually([&] { return downs >= 1 && !messages->connected(); }));
  std::atomic<int> code{0};
  messages->request<fb::KvMatchReply>(names.kv_match("m"), query(), 1s, [&](result<view<fb::KvMatchReply>> r) {
    code = static_cast<int>(r.failure().code);
  });
  CHECK(eventually([&] { return code != 0; }, 3s));
  server.restart();
  CHECK(eventually([&] { return messages->connected() && ups >= 2; }));
  CHECK(eventually([&] {
    messages->publish(names.kv_delta("m", "e"), delta(1));
    return got > 0;
  }));
}

TEST_CASE_FIXTURE(fixture, "a server that has stopped reading blocks no publisher for long") {
  server.freeze();
  const auto begin = std::chrono::steady_clock::now();
  const auto passed = [begin] { return std::chrono::steady_clock::now() - begin; };
  auto sent = errc::none;
  while (sent == errc::none && passed() < 30s) sent = messages->publish(names.kv_delta("m", "e"), delta(1, 60'000));
  CHECK(sent != errc::none);
  CHECK(passed() < 15s);
  CHECK(eventually([&] { return !messages->connected(); }));
  server.thaw();
  CHECK(eventually([&] { return messages->connected(); }));
}

TEST_CASE_FIXTURE(fixture, "too large a message is refused at the sender") {
  CHECK(messages->publish(names.kv_delta("m", "e"), delta(1, 200'000)) == errc::too_large);
}

TEST_CASE_FIXTURE(fixture, "no call-back runs after a subscription or the bus has ended") {
  auto other = open();
  std::atomic<bool> ended{false};
  std::atomic<int> late{0}, got{0};
  auto sub = messages->subscribe(names.any_kv_delta(), {}, [&](inbound<fb::KvDelta>&&) { ++(ended ? late : got); });
  REQUIRE(sub);
  CHECK(eventually([&] {
    other->publish(names.kv_delta("m", "e"), delta(1));
    return got > 10;
  }));
  { const auto gone = *std::move(sub); }
  ended = true;
  for (int i = 0; i < 100; ++i) other->publish(names.kv_delta("m", "e"), delta(1));
  std::atomic<bool> cancelled{false};
  auto silent = messages->subscribe(names.any_kv_match(), {lane::rpc}, [](inbound<fb::KvMatchQuery>&&) {});
  messages->request<fb::KvMatchReply>(names.kv_match("m"), query(), 60s,
                                      [&](result<view<fb::KvMatchReply>> r) { cancelled = !r; });
  messages->close(2s);
  CHECK(cancelled);
  CHECK(late == 0);
  CHECK(messages->publish(names.kv_delta("m", "e"), delta(1)) == errc::bus_down);
}

TEST_CASE("without a server connecting fails within its deadline") {
  log::configure(log::level::off, "test");
  metrics_registry metrics;
  bus_settings settings;
  settings.url = "nats://127.0.0.1:" + std::to_string(test::free_port());
  settings.connect_deadline = 100ms;
  const auto made = bus::connect(settings, metrics);
  REQUIRE_FALSE(made);
  CHECK(made.failure().code == errc::bus_down);
}
