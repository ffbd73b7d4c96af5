#include <atomic>
#include <numeric>
#include <thread>

#include <doctest/doctest.h>

#include "actors/router/prediction_book.hpp"

namespace infernex::router {
namespace {

using namespace std::chrono_literals;
using keys = std::vector<prediction_index::block_key>;
constexpr auto token = fb::KeyMode::Token;
constexpr auto text = fb::KeyMode::Text;

keys chain(std::uint64_t first, std::size_t count) {
  keys out(count);
  std::iota(out.begin(), out.end(), first);
  return out;
}

/// Engines e0 (no KV events) and e1 (with events) of model m.
struct setup {
  topology engines;
  prediction_index all;
  prediction_index::reader lookups{all};
  clock_point now{1'000s};

  explicit setup(prediction_settings how = {}) : all(how) {
    auto& m = engines.models["m"];
    m.model = "m";
    for (const auto* name : {"e0", "e1"}) {
      auto& e = m.endpoints.emplace_back();
      e.instance = name;
      e.state = fb::EngineState::Ready;
      e.block_size = 16;
      e.engine_epoch = 1;
    }
    m.endpoints[1].kv_health = fb::KvHealth::Live;
    all.follow(engines);
  }
  endpoint& engine(std::size_t i) { return engines.models["m"].endpoints[i]; }
  std::uint32_t record(const char* instance, const keys& of, fb::KeyMode mode = token) {
    return all.record("m", mode, instance, of, now).had;
  }
  std::uint32_t blocks(std::string_view instance, const keys& of, fb::KeyMode mode = token) {
    for (const auto& m : lookups.lookup("m", mode, of))
      if (m.instance == instance) return m.blocks;
    return 0;
  }
};

TEST_CASE("what was routed to an engine is predicted there: as far as the prompts agree, and nowhere else") {
  setup s;
  CHECK(s.lookups.lookup("m", token, chain(1, 4)).empty());
  CHECK(s.record("e0", chain(1, 4)) == 0);
  CHECK(s.blocks("e0", chain(1, 4)) == 4);
  CHECK(s.blocks("e1", chain(1, 4)) == 0);
  auto other = chain(1, 2);
  other.push_back(99);
  CHECK(s.blocks("e0", other) == 2);
  CHECK(s.record("e0", other) == 2);
  CHECK(s.all.count().entries == 5);
  CHECK(s.lookups.lookup("other", token, chain(1, 4)).empty());
}

TEST_CASE("keys of text and keys of tokens never meet") {
  setup s;
  s.record("e0", chain(1, 4), text);
  CHECK(s.blocks("e0", chain(1, 4), text) == 4);
  CHECK(s.blocks("e0", chain(1, 4), token) == 0);
}

TEST_CASE("an entry lives as long as nothing else can tell: by what the engine says of its events") {
  setup s;
  s.record("e0", chain(1, 2));
  s.record("e1", chain(1, 2));
  s.record("e1", chain(50, 2), text);  // events never tell of text
  s.now += 1999ms;
  s.all.expire(s.now);
  CHECK(s.blocks("e1", chain(1, 2)) == 2);
  s.now += 100ms;
  s.all.expire(s.now);
  CHECK(s.blocks("e1", chain(1, 2)) == 0);
  CHECK(s.blocks("e0", chain(1, 2)) == 2);
  CHECK(s.all.count().expired == 2);
  s.now += 117s;
  CHECK(s.record("e0", chain(1, 1)) == 1);  // used again: lives on
  s.now += 2s;
  s.all.expire(s.now);
  CHECK(s.blocks("e0", chain(1, 2)) == 1);
  CHECK(s.blocks("e1", chain(50, 2), text) == 0);
  // The engine loses its events: from now on what is routed there counts longer.
  s.engine(1).kv_health = fb::KvHealth::Absent;
  s.all.follow(s.engines);
  s.record("e1", chain(1, 2));
  s.now += 60s;
  s.all.expire(s.now);
  CHECK(s.blocks("e1", chain(1, 2)) == 2);
}

TEST_CASE("an engine holds no more than its size; ends go before beginnings, the long unused before the rest") {
  setup s;
  s.engine(0).total_blocks = 8;
  s.all.follow(s.engines);
  s.record("e0", chain(1, 5));
  s.now += 1s;
  s.record("e0", chain(101, 5));
  CHECK(s.blocks("e0", chain(101, 5)) == 5);
  CHECK(s.blocks("e0", chain(1, 5)) == 3);
  CHECK(s.all.count().evicted == 2);
  CHECK(s.all.count().entries == 8);
  // A prompt larger than the engine: its beginning.
  CHECK(s.record("e0", chain(201, 20)) == 0);
  CHECK(s.blocks("e0", chain(201, 20)) == 8);
  CHECK(s.all.count().shed == 12);
  // The engine's blocks are larger than those of our keys; text blocks are larger still.
  s.engine(0).engine_block_size = 32;
  s.all.follow(s.engines);
  s.record("e0", chain(301, 20));
  CHECK(s.blocks("e0", chain(301, 20)) == 16);
  s.record("e0", chain(401, 20), text);
  CHECK(s.blocks("e0", chain(401, 20), text) == 2);
  // A prompt of which the engine holds the oldest part, when it is full.
  setup t;
  t.engine(0).total_blocks = 2;
  t.all.follow(t.engines);
  t.record("e0", chain(1, 1));
  t.record("e0", chain(9, 1));
  t.record("e0", chain(1, 2));
  CHECK(t.blocks("e0", chain(1, 2)) == 2);
  CHECK(t.blocks("e0", chain(9, 1)) == 0);
  CHECK(t.all.count().entries == 2);
}

TEST_CASE("an engine that went down, was replaced or has gone is predicted nothing") {
  setup s;
  s.record("e0", chain(1, 3));
  s.record("e1", chain(1, 3));
  SUBCASE("down") { s.engine(0).state = fb::EngineState::Down; }
  SUBCASE("a new process") { s.engine(0).engine_epoch = 2; }
  SUBCASE("gone") { s.engines.models["m"].endpoints.erase(s.engines.models["m"].endpoints.begin()); }
  s.all.follow(s.engines);
  CHECK(s.blocks("e0", chain(1, 3)) == 0);
  CHECK(s.blocks("e1", chain(1, 3)) == 3);
  CHECK(s.all.count().entries == 3);
  s.engines.models.clear();
  s.all.follow(s.engines);
  CHECK(s.lookups.lookup("m", token, chain(1, 3)).empty());
  CHECK(s.all.count().entries == 0);
  CHECK(s.record("e1", chain(1, 3)) == 0);
}

TEST_CASE("what is not known of an engine's process does not clear its predictions") {
  setup s;
  s.engine(0).engine_epoch.reset();
  s.all.follow(s.engines);
  s.record("e0", chain(1, 3));
  s.engine(0).state = fb::EngineState::Draining;
  s.all.follow(s.engines);
  CHECK(s.blocks("e0", chain(1, 3)) == 3);
}

TEST_CASE("all memory stays under its bound, and comes back") {
  prediction_settings how;
  how.max_bytes = 1 << 20;
  setup s(how);
  for (std::uint64_t i = 0; i < 200; ++i) {
    s.now += 1ms;
    s.record("e0", chain(1'000'000 * i, 500));
    s.record("e0", chain(1'000'000 * i, 500), text);
    CHECK(s.all.count().bytes <= how.max_bytes);
  }
  const auto full = s.all.count();
  CHECK(full.entries > 500);
  CHECK(full.evicted + full.shed > 0);
  CHECK(s.blocks("e0", chain(199'000'000, 500)) > 0);
  s.now += 200s;
  s.all.expire(s.now);
  CHECK(s.all.count().entries == 0);
  s.now += 100s;
  for (int i = 0; i < 1'000; ++i) {
    s.now += 1s;
    s.all.expire(s.now);
  }
  CHECK(s.all.count().bytes < full.bytes / 4);
}

TEST_CASE("switched off, nothing is recorded") {
  prediction_settings how;
  how.enabled = false;
  setup s(how);
  s.record("e0", chain(1, 3));
  CHECK(s.all.count().entries == 0);
}

TEST_CASE("a request that is served elsewhere takes its prediction along, but not what others have confirmed") {
  setup s;
  prediction_book book(s.all);
  book.routed("r1", "m", token, "e0", chain(1, 2), s.now);
  s.now += 1ms;
  SUBCASE("asked again") {
    book.routed("r2", "m", token, "e0", chain(1, 4), s.now);
    s.now += 1ms;
    book.routed("r2", "m", token, "e1", chain(1, 4), s.now);
    CHECK(s.blocks("e0", chain(1, 4)) == 2);
    CHECK(s.blocks("e1", chain(1, 4)) == 4);
    book.finished("r2", "e1", s.now);
    CHECK(book.open() == 1);
  }
  SUBCASE("the gateway's own choice") {
    book.routed("r2", "m", token, "e0", chain(1, 4), s.now);
    book.finished("r2", "e1", s.now);
    CHECK(s.blocks("e0", chain(1, 4)) == 2);
    CHECK(s.blocks("e1", chain(1, 4)) == 4);
  }
  SUBCASE("served by nobody") {
    book.routed("r2", "m", token, "e0", chain(1, 4), s.now);
    book.finished("r2", "", s.now);
    CHECK(s.blocks("e0", chain(1, 4)) == 2);
  }
  SUBCASE("another request used the same since") {
    book.routed("r2", "m", token, "e0", chain(1, 4), s.now);
    s.now += 1ms;
    book.routed("r3", "m", token, "e0", chain(1, 3), s.now);
    book.finished("r2", "", s.now);
    CHECK(s.blocks("e0", chain(1, 4)) == 3);
  }
  book.finished("r1", "e0", s.now);
  book.finished("unknown", "e1", s.now);
  CHECK(s.blocks("e0", chain(1, 2)) == 2);
}

TEST_CASE("of requests placed at one time, one that nobody served takes back nothing that others rest on") {
  setup s;
  prediction_book book(s.all);
  for (int i = 0; i < 30; ++i) book.routed(std::to_string(i), "m", token, "e0", chain(1, 4), s.now);
  book.finished("0", "", s.now);
  CHECK(s.blocks("e0", chain(1, 4)) == 4);
  for (int i = 1; i < 30; ++i) book.finished(std::to_string(i), "e0", s.now);
  CHECK(s.blocks("e0", chain(1, 4)) == 4);
  // Times that go back do not confuse it either.
  book.routed("a", "m", token, "e1", chain(1, 4), s.now);
  book.routed("b", "m", token, "e1", chain(1, 2), s.now - 1ms);
  book.finished("a", "", s.now);
  CHECK(s.blocks("e1", chain(1, 4)) == 2);
}

TEST_CASE("requests whose end nobody reports are forgotten, and a bound forgets the oldest") {
  setup s;
  prediction_book book(s.all, {3, 1 << 20});
  for (const auto* id : {"a", "b", "c", "d"}) book.routed(id, "m", token, "e0", chain(1, 4), s.now);
  CHECK(book.open() == 3);
  CHECK(book.shed() == 1);
  s.now += 120s + 1us;  // their times are nanoseconds apart
  book.expire(s.now);
  CHECK(book.open() == 0);
  CHECK(book.bytes() == 0);
  prediction_book small(s.all, {1'000, 4'096});
  for (int i = 0; i < 20; ++i) small.routed(std::to_string(i), "m", token, "e0", chain(1, 100), s.now);
  CHECK(small.bytes() <= 4'096);
  CHECK(small.open() > 0);
}

TEST_CASE("readers on other threads never see a block that was not routed") {
  setup s;
  std::atomic<bool> stop{false};
  std::atomic<std::uint64_t> wrong{0};
  std::vector<std::thread> threads;
  for (int i = 0; i < 2; ++i)
    threads.emplace_back([&] {
      prediction_index::reader lookups(s.all);
      const auto asked = chain(1, 64);
      while (!stop)
        for (const auto& m : lookups.lookup("m", token, asked)) wrong += m.blocks > 32 || m.instance == "e1";
    });
  for (int round = 0; round < 200; ++round) {
    s.now += 100ms;
    s.record("e0", chain(1, 32));
    s.record("e1", chain(1'000 + 50 * static_cast<std::uint64_t>(round), 40));
    if (round % 20 == 19) {
      s.engine(0).engine_epoch = round;
      s.all.follow(s.engines);
    }
    s.all.expire(s.now);
  }
  stop = true;
  for (auto& t : threads) t.join();
  CHECK(wrong == 0);
}

}  // namespace
}  // namespace infernex::router
