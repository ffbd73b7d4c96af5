#pragma once

#include <string>

#include <doctest/doctest.h>

#include "diagnosis/engine.hpp"
#include "diagnosis/knowledge_base.hpp"

namespace infernex::diagnosis::test {

inline std::shared_ptr<const knowledge> embedded() {
  static const auto base = load_knowledge("", "").base;
  REQUIRE(base != nullptr);
  return base;
}

/// One node with devices of one vendor, a sample a second, in virtual time.
class bench {
 public:
  explicit bench(fb::HwVendor vendor, std::uint32_t devices = 1) : rules(embedded()) {
    sample.node = "n0";
    for (std::uint32_t i = 0; i < devices; ++i) {
      auto& one = sample.devices.emplace_back();
      one.index = i;
      one.vendor = vendor;
      one.id = "id-" + std::to_string(i);
      if (vendor == fb::HwVendor::Ascend) one.codes.emplace();
    }
  }
  monitor::device_sample& device(std::uint32_t index = 0) { return sample.devices[index]; }
  void set(metric id, double value, std::uint16_t part = 0) { device().values.set(id, value, part); }
  /// So many seconds of the same.
  void run(int seconds) {
    for (int i = 0; i < seconds; ++i) {
      now += 1000;
      sample.time = static_cast<std::uint64_t>(now) * 1'000'000;
      rules.on_sample(sample, now);
      rules.on_tick(now);
      for (auto& one : rules.take_changes()) told.push_back(one);
    }
  }
  void tell(fb::HwEventKind kind, std::optional<std::uint64_t> code = std::nullopt,
            fb::HwAssertion assertion = fb::HwAssertion::OneOff, fb::HwLevel level = fb::HwLevel::Unknown,
            const std::string& unit = {}) {
    fb::HwEventT event;
    event.node = sample.node;
    event.device = device().index;
    event.vendor = device().vendor;
    event.kind = kind;
    event.code = code;
    event.assertion = assertion;
    event.level = level;
    event.unit = unit;
    rules.on_event(event, now);
    for (auto& one : rules.take_changes()) told.push_back(one);
  }
  void code(std::uint64_t number) { device().codes->push_back(number); }
  void no_codes() { device().codes->clear(); }
  verdict_ref standing(std::string_view rule) const {
    for (const auto& one : rules.book().all_standing())
      if (one->rule == rule) return one;
    return nullptr;
  }
  std::size_t raised(std::string_view rule) const {
    std::size_t n = 0;
    for (const auto& one : told) n += one->rule == rule && one->state == fb::VerdictState::Raised;
    return n;
  }

  engine rules;
  monitor::node_sample sample;
  millis now = 1'700'000'000'000;
  std::vector<verdict_ref> told;
};

}  // namespace infernex::diagnosis::test
