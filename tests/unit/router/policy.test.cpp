#include "actors/router/policy.hpp"

#include <algorithm>
#include <cstdlib>
#include <new>
#include <set>

#include <doctest/doctest.h>

namespace {
thread_local std::size_t allocations = 0;
}

// Counts what decisions allocate.
void* operator new(std::size_t size) {
  ++allocations;
  if (void* memory = std::malloc(size)) return memory;
  throw std::bad_alloc();
}
void* operator new(std::size_t size, const std::nothrow_t&) noexcept {
  ++allocations;
  return std::malloc(size);
}
void operator delete(void* memory) noexcept { std::free(memory); }
void operator delete(void* memory, const std::nothrow_t&) noexcept { std::free(memory); }
void operator delete(void* memory, std::size_t) noexcept { std::free(memory); }

namespace infernex::router {
namespace {

using namespace std::chrono_literals;
constexpr clock_point now{1'000s};

/// Two engines that do all, and one PD group of two prefill and two decode engines.
struct mixed_fleet {
  load_board loads{16};
  model_endpoints of{"m", {}};
  std::vector<std::uint64_t> keys{1, 2, 3, 4, 5, 6, 7, 8, 9};
  /// Outlives the engines' own names, which move when engines are added.
  std::string holder;
  std::vector<overlap> found;

  explicit mixed_fleet(bool apart) {
    if (apart) {
      add("d0", fb::EngineRole::Decode);
      add("d1", fb::EngineRole::Decode);
      add("p0", fb::EngineRole::Prefill);
      add("p1", fb::EngineRole::Prefill);
    } else {
      add("e0", fb::EngineRole::Aggregated);
      add("e1", fb::EngineRole::Aggregated);
    }
    holder = of.endpoints.back().instance;
    found = {{holder, 5}};
  }
  /// A second PD group, and an engine that does all.
  void add_group(const std::string& group) {
    add("e" + group, fb::EngineRole::Aggregated);
    add("d" + group, fb::EngineRole::Decode, group);
    add("p" + group, fb::EngineRole::Prefill, group);
    std::sort(of.endpoints.begin(), of.endpoints.end(),
              [](const auto& a, const auto& b) { return a.instance < b.instance; });
  }
  void add(std::string name, fb::EngineRole role, const std::string& group = "g") {
    endpoint e;
    e.instance = std::move(name);
    e.role = role;
    e.group = role == fb::EngineRole::Aggregated ? "" : group;
    e.state = fb::EngineState::Ready;
    e.slot = *loads.acquire();
    e.block_size = 16;
    e.total_blocks = 1'000;
    loads.report(e.slot, 1, 2, 0.25, now);
    loads.learn(e.slot, {20.0F, 0.05F, 10.0F, 0.01F, 100.0F, 12.0F, 100.0F});
    of.endpoints.push_back(std::move(e));
  }
  const decision& decide(scheduler& by) const {
    placement p;
    p.request_id = "r";
    p.key_mode = fb::KeyMode::Token;
    p.prompt_tokens = 160;
    p.block_size = 16;
    p.blocks = 9;
    p.keys = keys;
    return by.decide(p, &of, loads, {true, {}, found, {}}, now);
  }
};

TEST_CASE("every strategy has a name of its own, can be made, and places a request on the fleet it is for") {
  std::set<std::string_view> names;
  for (const auto name : strategies()) {
    CAPTURE(name);
    CHECK(names.insert(name).second);
    policy how;
    how.strategy = name;
    const auto by = make_scheduler(spec_of(how));
    CHECK(by->name() == name);
    const mixed_fleet fleet(by->disaggregates());
    const auto& decided = fleet.decide(*by);
    CHECK(takes_single_engines(how) == (name == "infernex" || !by->disaggregates()));
    REQUIRE_FALSE(decided.serving.ranked.empty());
    CHECK(decided.reason.starts_with(name));
    if (!by->disaggregates()) {
      CHECK(decided.prefill.ranked.empty());
      CHECK(decided.prefills() == &decided.serving.ranked.front());
      continue;
    }
    CHECK(decided.serving.ranked.front().to->role == fb::EngineRole::Decode);
    if (name == "infernex") continue;  // alone, on idle engines
    REQUIRE_FALSE(decided.prefill.ranked.empty());
    CHECK(decided.prefills()->to->role == fb::EngineRole::Prefill);
  }
  CHECK(names.contains("infernex"));
  CHECK(names.contains("kv-aware"));
}

TEST_CASE("no strategy allocates once it has warmed up") {
  for (const auto name : strategies()) {
    CAPTURE(name);
    policy how;
    how.strategy = name;
    for (const bool apart : {false, true}) {
      CAPTURE(apart);
      const auto by = make_scheduler(spec_of(how));
      if (apart ? !by->disaggregates() : !takes_single_engines(how)) continue;
      mixed_fleet fleet(apart);
      if (apart) fleet.add_group("h");
      for (int i = 0; i < 200; ++i) fleet.decide(*by);
      const auto before = allocations;
      for (int i = 0; i < 200; ++i) fleet.decide(*by);
      CHECK(allocations == before);
    }
  }
}

TEST_CASE("what needs no cache stays what it is without one, and so does the number of runners-up") {
  policy how;
  how.runners_up = 1;
  CHECK(spec_without_cache(how).name == "least-load-pd");
  how.strategy = "kv-aware";
  CHECK(spec_without_cache(how).name == "least-load");
  CHECK(spec_without_cache(how).runners_up == 1);
  CHECK(spec_of(how).runners_up == 1);
  CHECK(uses_cache(how));
  how.strategy = "round-robin";
  CHECK(spec_without_cache(how).name == "round-robin");
  CHECK_FALSE(uses_cache(how));
  CHECK_FALSE(disaggregates(how));
  how.strategy = "round-robin-pd";
  CHECK(spec_without_cache(how).name == "round-robin-pd");
  how.strategy = "infernex-pd";
  CHECK(spec_without_cache(how).name == "least-load-pd");
  CHECK_FALSE(make_scheduler(spec_without_cache(how))->uses_cache());
  how.strategy = "pd-bucket";
  CHECK(disaggregates(how));
}

TEST_CASE("mistakes of a configuration come all at once, each with its place and the nearest known name") {
  scheduler_spec spec;
  spec.plugins = {
      {"a", "queue-scorrer", {}}, {"b", "overlap-scorer", {{"devise", 1}, {"host", 7}}}, {"b", "random-picker", {}}};
  spec.profiles = {{"default", {{"b", -1}, {"c"}}}, {"default", {}}};
  std::vector<spec_problem> problems;
  CHECK_FALSE(scheduler::make(spec, problems));
  const auto said = [&](std::string_view path, std::string_view part) {
    for (const auto& p : problems)
      if (p.path == path && p.message.find(part) != std::string::npos) return true;
    return false;
  };
  CHECK(said("plugins[0].type", "did you mean \"queue-scorer\"?"));
  CHECK(said("plugins[1].parameters.devise", "did you mean \"device\"?"));
  CHECK(said("plugins[1].parameters.host", "a number from 0 to 1"));
  CHECK(said("plugins[2].name", "a second plugin named \"b\""));
  CHECK(said("schedulingProfiles[0].plugins[0].weight", "from 0 to 1000000"));
  CHECK(said("schedulingProfiles[0].plugins[1].pluginRef", "no plugin is named \"c\""));
  CHECK(said("schedulingProfiles[1].name", "a second profile"));
  CHECK(problems.size() == 7);
}

TEST_CASE("a plugin by the name of one that is added by default is refused, not used as such") {
  for (const auto* name : {"single-profile-handler", "max-score-picker"}) {
    scheduler_spec spec;
    spec.plugins = {{name, "queue-scorer", {}}};
    spec.profiles = {{"default", {{name}}}};
    std::vector<spec_problem> problems;
    CHECK_FALSE(scheduler::make(spec, problems));
    REQUIRE_FALSE(problems.empty());
    CHECK(problems[0].message.find(name) != std::string::npos);
  }
}

TEST_CASE("turns are kept model by model, and begin where the seed says") {
  mixed_fleet a(false), b(false);
  b.of.model = "other";
  policy turns;
  turns.strategy = "round-robin";
  const auto one = make_scheduler(spec_of(turns), 1);
  const auto two = make_scheduler(spec_of(turns), 2);
  std::string order;
  for (int i = 0; i < 4; ++i) {
    order += a.decide(*one).serving.ranked.front().to->instance;
    order += b.decide(*one).serving.ranked.front().to->instance;
  }
  CHECK(order == "e0e0e1e1e0e0e1e1");
  CHECK(a.decide(*two).serving.ranked.front().to->instance == "e1");
}

}  // namespace
}  // namespace infernex::router
