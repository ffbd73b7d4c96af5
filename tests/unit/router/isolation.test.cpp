#include "actors/router/isolation.hpp"

#include <doctest/doctest.h>

#include "actors/router/candidate_rows.hpp"
#include "actors/router/policy.hpp"
#include "messages/view.hpp"

namespace infernex::router {
namespace {

using namespace std::chrono_literals;
using action = fb::VerdictAction;

template <class Object>
view<typename Object::TableType> verified(const Object& object) {
  const auto bytes = encode(object);
  return *view<typename Object::TableType>::verify(chunk::copy_of(bytes_of(bytes)));
}

/// Diagnosis and agents that speak to a fleet, and a clock of its own.
struct health_setup {
  fleet of;
  clock_point now{1'000s};
  std::uint64_t sequence = 0;
  std::uint64_t epoch = 1;

  explicit health_setup(fleet_settings how = {}) : of(how) {}

  std::unique_ptr<fb::OriginT> origin(const std::string& id) {
    auto made = std::make_unique<fb::OriginT>();
    made->id = id;
    made->epoch = epoch;
    made->sequence = ++sequence;
    return made;
  }
  void engine(const std::string& instance, const std::string& node, std::vector<std::uint32_t> devices,
              fb::EngineState state = fb::EngineState::Ready, fb::EngineRole role = fb::EngineRole::Aggregated) {
    fb::EngineAnnounceT m;
    m.origin = origin("agent/" + instance);
    m.model = "m";
    m.instance = instance;
    m.url = "http://" + instance;
    m.node = node;
    m.devices = std::move(devices);
    m.state = state;
    m.role = role;
    of.on_announce(*verified(m), now);
  }
  fb::VerdictT verdict(const std::string& node, std::optional<std::uint32_t> device, action asked,
                       const std::string& pattern = "hbm-multi-bit-ecc", std::uint64_t since = 7) {
    fb::VerdictT m;
    m.origin = origin("diagnosis");
    m.node = node;
    if (device) m.device = *device;
    m.pattern = pattern;
    m.device_action = asked;
    m.state = asked == action::Ok ? fb::VerdictState::Cleared : fb::VerdictState::Raised;
    if (asked != action::Ok) {
      auto open = std::make_unique<fb::OpenVerdictT>();
      open->pattern = pattern;
      open->action = asked;
      open->since = since;
      m.open.push_back(std::move(open));
    }
    return m;
  }
  void say(const fb::VerdictT& m) { of.on_verdict(*verified(m), now); }
  const endpoint& at(const std::string& instance) {
    published<topology>::reader reader(of.topologies());
    shown = reader.shared();
    return *shown->find("m")->find(instance);
  }
  std::shared_ptr<const topology> shown;
};

TEST_CASE("an engine is isolated by a verdict on one of its devices, and returns when it is cleared") {
  health_setup s;
  s.engine("a", "n0", {0, 1});
  s.engine("b", "n0", {2, 3});
  s.say(s.verdict("n0", 1, action::Isolate));
  CHECK(s.at("a").health.isolated());
  CHECK(s.at("a").health.why == "isolate: hbm-multi-bit-ecc on device 1 of n0");
  CHECK(s.at("b").health == engine_health{});
  CHECK(s.of.isolations().isolated == 1);
  const auto events = s.of.take_health_events();
  REQUIRE(events.size() == 1);
  CHECK(events[0].instance == "a");
  CHECK(events[0].now.applied == action::Isolate);
  CHECK(s.of.take_health_events().empty());

  s.say(s.verdict("n0", 1, action::Ok));
  CHECK(s.at("a").health == engine_health{});
  CHECK(s.of.take_health_events().size() == 1);
}

TEST_CASE("a verdict on a node means all engines there, and waits for engines that are not announced yet") {
  health_setup s;
  s.say(s.verdict("n1", std::nullopt, action::Degrade, "memory-pressure"));
  s.engine("a", "n1", {});
  s.engine("b", "n2", {0});
  CHECK(s.at("a").health.applied == action::Degrade);
  CHECK(s.at("a").health.score_factor == doctest::Approx(0.5));
  CHECK(s.at("b").health.score_factor == doctest::Approx(1));
}

TEST_CASE("the gravest of an engine's devices counts, and watching changes nothing of its score") {
  health_setup s;
  s.engine("a", "n0", {0, 1});
  s.engine("b", "n0", {4});
  s.say(s.verdict("n0", 0, action::Watch, "slow-drift"));
  CHECK(s.at("a").health.applied == action::Watch);
  CHECK(s.at("a").health.score_factor == doctest::Approx(1));
  s.say(s.verdict("n0", 1, action::Isolate));
  CHECK(s.at("a").health.isolated());
  s.say(s.verdict("n0", 1, action::Ok));
  CHECK(s.at("a").health.applied == action::Watch);
}

TEST_CASE("no more than the share is isolated, never the last, and the others are served on") {
  health_setup s;
  for (const auto* name : {"a", "b", "c"}) s.engine(name, std::string("n-") + name, {0});
  s.say(s.verdict("n-b", 0, action::Isolate, "x", 20));
  s.say(s.verdict("n-a", 0, action::Isolate, "x", 10));
  CHECK(s.at("b").health.isolated());  // it is so already, though a's verdict is older
  CHECK(!s.at("a").health.isolated());
  CHECK(s.at("a").health.asked == action::Isolate);
  CHECK(s.at("a").health.score_factor == doctest::Approx(0.5));
  CHECK(s.at("a").health.why.find("served on: 1 of 3") != std::string::npos);
  CHECK(s.of.isolations().withheld == 1);

  s.say(s.verdict("n-b", 0, action::Ok));
  CHECK(s.at("a").health.isolated());
  CHECK(s.of.isolations().withheld == 0);
}

TEST_CASE("only ready engines are counted") {
  health_setup s;
  s.engine("a", "n-a", {0});
  s.engine("b", "n-b", {0}, fb::EngineState::Down);
  s.say(s.verdict("n-a", 0, action::Isolate));
  CHECK(!s.at("a").health.isolated());  // it is the last
  s.engine("b", "n-b", {0});
  CHECK(s.at("a").health.isolated());
  s.engine("b", "n-b", {0}, fb::EngineState::Down);
  CHECK(!s.at("a").health.isolated());
}

TEST_CASE("prefill and decode engines are counted apart") {
  health_setup s;
  for (const auto* name : {"p0", "p1"}) s.engine(name, name, {0}, fb::EngineState::Ready, fb::EngineRole::Prefill);
  for (const auto* name : {"d0", "d1"}) s.engine(name, name, {0}, fb::EngineState::Ready, fb::EngineRole::Decode);
  s.say(s.verdict("d0", 0, action::Isolate));
  s.say(s.verdict("d1", 0, action::Isolate));
  s.say(s.verdict("p0", 0, action::Isolate));
  CHECK(s.at("d0").health.isolated());
  CHECK(!s.at("d1").health.isolated());
  CHECK(s.at("p0").health.isolated());
}

TEST_CASE("verdicts that are only shown change nothing") {
  fleet_settings how;
  how.verdicts = verdict_use::show;
  health_setup s(how);
  s.engine("a", "n0", {0});
  s.engine("b", "n1", {0});
  s.say(s.verdict("n0", 0, action::Isolate));
  CHECK(!s.at("a").health.isolated());
  CHECK(s.at("a").health.asked == action::Isolate);
  CHECK(s.at("a").health.score_factor == doctest::Approx(1));
}

TEST_CASE("old messages say nothing, and a verdict that nobody repeats is let go") {
  health_setup s;
  s.engine("a", "n0", {0});
  s.engine("b", "n1", {0});
  auto early = s.verdict("n0", 0, action::Isolate);
  s.say(s.verdict("n0", 0, action::Degrade));
  s.say(early);
  CHECK(s.at("a").health.applied == action::Degrade);

  const auto settings = fleet_settings{};
  const auto step = settings.silence / 2;
  for (auto waited = 0ms; waited < settings.verdict_silence; waited += step) {
    CHECK(s.at("a").health.applied == action::Degrade);
    s.now += step;
    s.engine("a", "n0", {0});
    s.engine("b", "n1", {0});
    s.of.on_tick(s.now);
  }
  CHECK(s.at("a").health == engine_health{});
}

TEST_CASE("messages that name no place are refused") {
  verdict_board board(1min, 1);
  health_setup s;
  CHECK(!board.on_verdict(*verified(s.verdict("", 0, action::Isolate)), s.now));
  CHECK(board.on_verdict(*verified(s.verdict("n0", 0, action::Isolate)), s.now));
  CHECK(!board.on_verdict(*verified(s.verdict("n0", 1, action::Isolate)), s.now));  // one place is all it keeps
  CHECK(board.refused() == 2);
  CHECK(board.places() == 1);
}

/// Two engines of equal load, of which the first has a verdict.
struct weighed_pair {
  load_board loads{4};
  model_endpoints of{"m", {}};
  policy how;
  explicit weighed_pair(std::string strategy, engine_health health) {
    how.strategy = std::move(strategy);
    for (const auto* name : {"a", "b"}) {
      endpoint e;
      e.instance = name;
      e.url = "http://" + e.instance;
      e.state = fb::EngineState::Ready;
      e.slot = *loads.acquire();
      loads.report(e.slot, 0, 0, 0.5, clock_point{1'000s});
      of.endpoints.push_back(e);
    }
    of.endpoints[0].health = std::move(health);
  }
  decision decide(scheduler& by, scheduler::detail how_much = scheduler::detail::brief) {
    placement p;
    p.request_id = "r";
    p.blocks = 10;
    p.block_size = 16;
    p.prompt_tokens = 160;
    return by.decide(p, &of, loads, {true, "", {}, {}}, clock_point{1'000s}, how_much);
  }
};

TEST_CASE("every policy leaves out who is isolated, and says why") {
  for (const auto* strategy : {"round-robin", "random", "kv-aware", "infernex", "dynamo", "least-load"}) {
    CAPTURE(strategy);
    weighed_pair t(strategy, {action::Isolate, action::Isolate, 0.5, "isolate: x on device 0 of n0"});
    const auto by = make_scheduler(spec_of(t.how));
    for (int i = 0; i < 10; ++i) CHECK(t.decide(*by).serving.ranked.front().to->instance == "b");
    const auto all = t.decide(*by, scheduler::detail::every_candidate);
    REQUIRE(all.left_out_engines.size() == 1);
    CHECK(all.left_out_engines[0].by == "isolate: x on device 0 of n0");
    t.of.endpoints[1].state = fb::EngineState::Down;
    CHECK(t.decide(*by).reason.find("1 isolated by verdicts") != std::string::npos);
  }
}

TEST_CASE("who is degraded is chosen after its equals, whether totals are scores or costs") {
  for (const auto* strategy : {"kv-aware", "infernex"}) {
    CAPTURE(strategy);
    weighed_pair t(strategy, {action::Degrade, action::Degrade, 0.5, "degrade: x"});
    const auto by = make_scheduler(spec_of(t.how));
    for (int i = 0; i < 10; ++i) CHECK(t.decide(*by).serving.ranked.front().to->instance == "b");
  }
}

TEST_CASE("a total is made worse") {
  CHECK(made_worse(2, 0.5, false) == doctest::Approx(1));
  CHECK(made_worse(-2, 0.5, false) == doctest::Approx(-4));
  CHECK(made_worse(2, 0.5, true) == doctest::Approx(4));
  CHECK(made_worse(-2, 0.5, true) == doctest::Approx(-1));
  CHECK(made_worse(0, 0.5, true) == doctest::Approx(0));
}

}  // namespace
}  // namespace infernex::router
