#include "actors/indexer/registrations.hpp"

#include <doctest/doctest.h>

namespace infernex::indexer {
namespace {

using namespace std::chrono_literals;
using verdict = registrations::verdict;
const time_point start = time_point{} + 1h;

registration wanted(std::optional<std::uint32_t> block_size = std::nullopt, std::string instance = "a") {
  registration r;
  r.id = r.engine.instance = std::move(instance);
  r.names.model = r.engine.model = "m";
  r.engine.kv_events = "tcp://h:1";
  r.engine.block_size = block_size;
  return r;
}

/// A page that shows engine `a`, heard of at `heard`; or no engine.
index_page page_of(std::optional<fb::EngineState> state, time_point heard = start,
                   std::optional<std::uint32_t> block_size = 16) {
  index_page page;
  auto engines = std::make_shared<engine_list>();
  if (state) {
    engine_entry e;
    e.instance = "a";
    e.state = *state;
    e.block_size = block_size;
    engines->models["m"].engines.push_back(e);
    source_status s;
    s.model = "m";
    s.instance = "a";
    s.last_heard = heard;
    page.sources.push_back(s);
  }
  page.engines = std::move(engines);
  return page;
}

std::string code(registrations& of, registration what, const index_page& page, time_point now = start) {
  const auto decided = of.decide(what, page, now);
  return decided.what == verdict::add ? "add" : decided.why ? decided.why->code : "said already";
}

unregistration all_of(std::string id) {
  unregistration u;
  u.id = std::move(id);
  return u;
}

TEST_CASE("an engine that another follows is refused, unless it is down or its source stale") {
  registrations known;
  CHECK(code(known, wanted(), page_of({})) == "add");
  CHECK(code(known, wanted(), page_of(fb::EngineState::Ready)) == "already_registered");
  CHECK(code(known, wanted(), page_of(fb::EngineState::Down)) == "add");
  CHECK(code(known, wanted(), page_of(fb::EngineState::Ready), start + 5'999ms) == "already_registered");
  CHECK(code(known, wanted(), page_of(fb::EngineState::Ready), start + 6s) == "add");
}

TEST_CASE("what was unregistered here may be registered again before the page shows its end") {
  registrations known;
  known.added(wanted(16));
  const auto lagging = page_of(fb::EngineState::Ready, start + 10s);
  CHECK(code(known, wanted(16), lagging) == "said already");
  CHECK(known.has("a"));
  REQUIRE(known.remove(all_of("a"), start).size() == 1);
  CHECK_FALSE(known.has("a"));
  CHECK(known.remove(all_of("a"), start).empty());
  CHECK(code(known, wanted(), lagging, start + 10ms) == "add");
  // Who shows up after our end has been seen is somebody else's.
  CHECK(code(known, wanted(), page_of(fb::EngineState::Down), start + 20ms) == "add");
  CHECK(code(known, wanted(), lagging, start + 30ms) == "already_registered");
  // And whoever is still heard of after so long.
  known.added(wanted(16));
  REQUIRE(known.remove(all_of("a"), start + 1s).size() == 1);
  CHECK(code(known, wanted(), lagging, start + 7s) == "already_registered");
}

TEST_CASE("an engine whose agent was given up can be registered again") {
  registrations known;
  known.added(wanted(16));
  known.lost("a");
  CHECK(code(known, wanted(16), page_of({})) == "add");
}

TEST_CASE("a model has one block size, that of what was registered before its engines are announced") {
  registrations known;
  known.added(wanted(32));
  CHECK(code(known, wanted(16, "b"), page_of({})) == "block_size_conflict");
  auto open = wanted(std::nullopt, "b");
  CHECK(known.decide(open, page_of({}), start).what == verdict::add);
  CHECK(open.engine.block_size == 32);
  auto elsewhere = wanted(16, "a");
  elsewhere.engine.block_size = 32;
  elsewhere.engine.kv_events = "tcp://h:2";
  CHECK(code(known, elsewhere, page_of({})) == "already_registered");
  registrations none;
  CHECK(code(none, wanted(32, "b"), page_of(fb::EngineState::Ready)) == "block_size_conflict");
  CHECK(code(none, wanted(16, "b"), page_of(fb::EngineState::Ready)) == "add");
}

}  // namespace
}  // namespace infernex::indexer
