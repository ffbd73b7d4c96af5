#include "monitor/sim_fleet.hpp"

#include <doctest/doctest.h>

#include "messages/decode.hpp"
#include "monitor/sim_plan.hpp"
#include "tests/unit/monitor/sim_run.hpp"

using namespace infernex;
using namespace infernex::monitor;

namespace {

std::string as_json(const node_sample& sample) { return *decode_to_json(bytes_of(pack(sample))); }

std::vector<std::string> mistakes_of(std::string_view text, const sim_settings& settings,
                                     std::vector<sim_fault>& plan) {
  auto file = config::document::parse(text, "faults.yaml");
  plan = read_sim_plan(file.root(), settings);
  std::vector<std::string> lines;
  for (const auto& one : file.problems()) lines.push_back(config::render(one));
  return lines;
}

}  // namespace

TEST_CASE("a fleet is the same for the same seed, and another for another") {
  sim_settings settings;
  settings.nodes = 2;
  settings.model = "mixed";
  settings.seed = 4;
  auto one = *sim_fleet::make(settings, {});
  auto same = *sim_fleet::make(settings, {});
  settings.seed = 5;
  auto other = *sim_fleet::make(settings, {});
  for (int i = 0; i < 300; ++i) {
    one.step();
    same.step();
    other.step();
  }
  CHECK(as_json(one.nodes()[0].sample()) == as_json(same.nodes()[0].sample()));
  CHECK(as_json(one.nodes()[1].sample()) == as_json(same.nodes()[1].sample()));
  CHECK(as_json(one.nodes()[0].sample()) != as_json(other.nodes()[0].sample()));
  CHECK(one.nodes()[0].sample().devices[0].vendor == fb::HwVendor::Ascend);
  CHECK(one.nodes()[1].sample().devices[0].vendor == fb::HwVendor::Nvidia);
}

TEST_CASE("a clean day is plausible, and its readings are complete") {
  for (const auto* model : {"ascend-910b", "nvidia-h100"}) {
    CAPTURE(model);
    sim_run run(model);
    run.settings.period_ms = 10'000;
    std::size_t readings_each = 0;
    double coolest = 1000;
    double warmest = 0;
    double busiest = 0;
    run.go(86'400, [&](const sim_node& node, std::uint64_t) {
      REQUIRE(node.sample().devices.size() == 8);
      for (const auto& device : node.sample().devices) {
        if (readings_each == 0) readings_each = device.values.size();
        REQUIRE(device.values.get(metric::Temperature));
        REQUIRE(device.values.size() == readings_each);
        REQUIRE(device.failures.empty());
        coolest = std::min(coolest, *device.values.get(metric::Temperature));
        warmest = std::max(warmest, *device.values.get(metric::Temperature));
        busiest = std::max(busiest, *device.values.get(metric::Power));
      }
      for (const auto& device : node.devices()) REQUIRE_FALSE(device.throttled);
    });
    const auto& kind = *find_sim_model(model);
    CHECK(readings_each >= 40);
    CHECK(coolest > 22);
    CHECK(warmest < kind.slowdown_celsius - 5);
    CHECK(busiest > 0.7 * kind.most_watts);
    CHECK(busiest < 1.1 * kind.most_watts);
    CHECK(run.events.empty());
    REQUIRE(run.inventories.size() == 1);
    CHECK(run.inventories[0].devices.size() == 8);
  }
}

TEST_CASE("incidents leave gaps, failed reads and corrected errors, and end by themselves") {
  sim_run run("ascend-910b");
  run.settings.incidents = true;
  std::size_t gaps = 0;
  std::size_t failures = 0;
  double single_bit = 0;
  run.go(2 * 86'400, [&](const sim_node& node, std::uint64_t) {
    gaps += 8 - node.sample().devices.size();
    for (const auto& device : node.sample().devices) failures += device.failures.size();
    single_bit = 0;
    for (const auto& device : node.devices()) single_bit += device.counts.ecc_single;
  });
  CHECK(gaps > 0);
  CHECK(gaps < 100);
  CHECK(failures > 20);
  CHECK(single_bit > 0);
  CHECK(single_bit < 8 * 24);
}

TEST_CASE("a script says which fault, where and when, and its mistakes are told where they stand") {
  sim_settings settings;
  settings.nodes = 2;
  std::vector<sim_fault> plan;
  CHECK(mistakes_of("faults:\n"
                    "  - {at: 60s, node: 1, device: 3, fault: thermal-throttling, for: 10m, strength: 1.2}\n"
                    "  - {at: 5, fault: code, code: '0x200001002'}\n"
                    "  - {at: 1h, fault: slow-drift}\n",
                    settings, plan)
            .empty());
  REQUIRE(plan.size() == 3);
  CHECK(plan[0].kind == fault_kind::thermal_throttling);
  CHECK(plan[0].at_ms == 60'000);
  CHECK(plan[0].for_ms == 600'000);
  CHECK(plan[0].device == 3);
  CHECK(plan[1].number == 0x200001002ULL);
  CHECK(plan[2].for_ms == info(fault_kind::slow_drift).usual_ms);

  const auto lines = mistakes_of(
      "faults:\n"
      "  - {at: 60s, fault: melting}\n"
      "  - {at: 60s, fault: row-remap-failure}\n"
      "  - {at: 60s, node: 2, fault: hang}\n"
      "  - {at: 60s, fault: code, code: x12}\n"
      "  - {fault: hang}\n",
      settings, plan);
  REQUIRE(lines.size() == 6);
  CHECK(lines[0].starts_with("faults.yaml:2:22: faults[0].fault: one of thermal-throttling, "));
  CHECK(lines[1].find("does not happen to a 910B4") != std::string::npos);
  CHECK(lines[2].find("nodes are 0 to 1") != std::string::npos);
  CHECK(lines[3].find("which code?") != std::string::npos);
  CHECK(lines[4].find("a number such as") != std::string::npos);
  CHECK(lines[5].starts_with("faults.yaml:6:"));
}

TEST_CASE("a drawn plan has every kind, apart from one another at a node, and is the same for the same seed") {
  sim_settings settings;
  settings.nodes = 100;
  settings.model = "mixed";
  sim_plan_shape shape;
  shape.of_each = 2;
  const auto plan = draw_sim_plan(settings, 9, shape);
  const auto again = draw_sim_plan(settings, 9, shape);
  const auto other = draw_sim_plan(settings, 10, shape);
  REQUIRE(plan.size() == again.size());
  bool differs = other.size() != plan.size();
  for (std::size_t i = 0; i < plan.size(); ++i) {
    CHECK(plan[i].at_ms == again[i].at_ms);
    differs = differs || plan[i].at_ms != other[i].at_ms;
    CHECK(plan[i].at_ms >= shape.quiet_ms);
    CHECK(plan[i].at_ms + plan[i].for_ms <= shape.horizon_ms);
    CHECK(find_sim_fault_mistake(settings, plan[i]).empty());
    for (std::size_t j = 0; j < i; ++j)
      CHECK_FALSE((plan[i].node == plan[j].node && plan[i].at_ms < plan[j].at_ms + plan[j].for_ms + shape.apart_ms));
  }
  CHECK(differs);
  for (const auto& row : fault_table()) {
    if (row.kind == fault_kind::code) continue;
    CAPTURE(row.name);
    const auto count = std::ranges::count(plan, row.kind, &sim_fault::kind);
    CHECK(count == 2 * (int{row.ascend} + int{row.nvidia}));
  }
}

TEST_CASE("a fault that cannot happen is refused, and one may come at any time") {
  sim_settings settings;
  auto refused = sim_fleet::make(settings, {{fault_kind::row_remap_pending, 0, 0, 0}});
  REQUIRE_FALSE(refused);
  CHECK(refused.failure().code == errc::invalid_request);
  settings.model = "tpu";
  CHECK_FALSE(sim_fleet::make(settings, {}));
  settings.model = "nvidia-h100";
  auto fleet = *sim_fleet::make(settings, {});
  for (int i = 0; i < 10; ++i) fleet.step();
  CHECK(fleet.inject({fault_kind::card_drop, 0, 9}).code == errc::invalid_request);
  CHECK(fleet.inject({fault_kind::card_drop, 0, 2, 0, 60'000}).code == errc::none);
  fleet.step();
  CHECK(fleet.nodes()[0].sample().find(2)->failures.size() == 1);
  REQUIRE(fleet.truths().size() == 1);
  CHECK(fleet.truths()[0].visible_ms == 10'000);
}
