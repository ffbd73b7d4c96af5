#include "monitor/sim_plan.hpp"

#include <algorithm>
#include <charconv>

#include "monitor/sim_node.hpp"
#include "monitor/sim_random.hpp"

namespace infernex::monitor {

namespace {

std::optional<std::uint64_t> read_fault_number(std::string_view text) {
  int base = 10;
  if (text.starts_with("0x") || text.starts_with("0X")) {
    text.remove_prefix(2);
    base = 16;
  }
  std::uint64_t number = 0;
  const auto [end, problem] = std::from_chars(text.data(), text.data() + text.size(), number, base);
  if (problem != std::errc{} || end != text.data() + text.size() || number == 0) return std::nullopt;
  return number;
}

bool overlaps(const sim_fault& one, const sim_fault& other, std::uint64_t apart_ms) {
  return one.node == other.node && one.at_ms < other.at_ms + other.for_ms + apart_ms &&
         other.at_ms < one.at_ms + one.for_ms + apart_ms;
}

std::optional<sim_fault> draw_fault(const sim_settings& settings, const fault_info& row, fb::HwVendor vendor,
                                    const std::vector<sim_fault>& others, const sim_plan_shape& shape,
                                    sim_random& random) {
  constexpr int tries = 400;
  if (shape.quiet_ms + row.usual_ms >= shape.horizon_ms) return std::nullopt;
  for (int i = 0; i < tries; ++i) {
    sim_fault fault;
    fault.kind = row.kind;
    fault.node = random.below(settings.nodes);
    fault.device = random.below(settings.devices);
    fault.for_ms = row.usual_ms;
    fault.strength = random.uniform(row.least_strength, row.most_strength);
    const double latest = static_cast<double>(shape.horizon_ms - row.usual_ms);
    fault.at_ms = static_cast<std::uint64_t>(random.uniform(static_cast<double>(shape.quiet_ms), latest));
    if (sim_model_of(settings, fault.node).vendor != vendor) continue;
    const auto clash = [&](const sim_fault& other) { return overlaps(fault, other, shape.apart_ms); };
    if (std::ranges::none_of(others, clash)) return fault;
  }
  return std::nullopt;
}

}  // namespace

std::vector<sim_fault> read_sim_plan(config::section at, const sim_settings& settings) {
  using namespace std::chrono_literals;
  std::vector<sim_fault> faults;
  for (auto& row : at.list("faults")) {
    sim_fault fault;
    std::string name;
    row.require("fault").require("at").read("fault", name);
    const auto* kind = find_fault(name);
    if (kind) {
      fault.kind = kind->kind;
      fault.for_ms = kind->usual_ms;
      fault.strength = (kind->least_strength + kind->most_strength) / 2;
    }
    std::chrono::milliseconds from{0};
    std::chrono::milliseconds lasts{fault.for_ms};
    std::string code;
    row.read("at", from, 0ms, 24h * 366)
        .read("for", lasts, 1ms, 24h * 366)
        .read("node", fault.node, 0, 1'000'000)
        .read("device", fault.device, 0, 1023)
        .read("strength", fault.strength, 0.0, 1000.0)
        .read("code", code);
    fault.at_ms = static_cast<std::uint64_t>(from.count());
    fault.for_ms = static_cast<std::uint64_t>(lasts.count());
    if (!code.empty()) {
      const auto number = read_fault_number(code);
      if (number)
        fault.number = *number;
      else
        row.complain("code", "a number such as 0x80E01801 or 119, not \"" + code + "\"");
    }
    if (!kind && !name.empty()) {
      std::string known;
      for (const auto& one : fault_table()) known += (known.empty() ? "" : ", ") + std::string(one.name);
      row.complain("fault", "one of " + known + ", not \"" + name + "\"");
    } else if (auto mistake = find_sim_fault_mistake(settings, fault); kind && !mistake.empty()) {
      row.complain("fault", mistake);
    }
    faults.push_back(fault);
  }
  return faults;
}

std::vector<sim_fault> draw_sim_plan(const sim_settings& settings, std::uint64_t seed, const sim_plan_shape& shape) {
  sim_random random(mix_seed(seed, 0x504C414E));
  std::vector<sim_fault> faults;
  // Long ones first: they are the hardest to place.
  std::vector<const fault_info*> kinds;
  for (const auto& row : fault_table())
    if (row.kind != fault_kind::code) kinds.push_back(&row);
  std::ranges::stable_sort(kinds, std::ranges::greater{}, [](const fault_info* row) { return row->usual_ms; });
  for (const auto* row : kinds)
    for (const auto vendor : {fb::HwVendor::Ascend, fb::HwVendor::Nvidia}) {
      if (!can_happen(row->kind, vendor)) continue;
      for (std::uint32_t i = 0; i < shape.of_each; ++i)
        if (auto fault = draw_fault(settings, *row, vendor, faults, shape, random)) faults.push_back(*fault);
    }
  std::ranges::stable_sort(faults, {}, &sim_fault::at_ms);
  return faults;
}

}  // namespace infernex::monitor
