#include <cmath>

#include "tests/unit/diagnosis/support.hpp"

namespace infernex::diagnosis {

namespace {

/// Eight devices whose load varies together; the third is `warmer` degrees above what it should show.
void serve(test::bench& b, int minutes, double warmer_at_end, double warmer_at_start) {
  for (int s = 0; s < 60 * minutes; ++s) {
    const double load = 0.5 + 0.4 * std::sin(static_cast<double>(b.now) / 200'000);
    const double share = static_cast<double>(s) / (60.0 * minutes);
    for (auto& one : b.sample.devices) {
      const double watts = 90 + 200 * load + (s * 7 + static_cast<int>(one.index) * 3) % 5;
      const double extra = one.index == 2 ? warmer_at_start + (warmer_at_end - warmer_at_start) * share : 0;
      one.values.set(metric::Power, watts);
      one.values.set(metric::AicoreUtilization, std::round(100 * load));
      one.values.set(metric::MemoryBandwidthUtilization, 50);
      one.values.set(metric::Temperature, std::round(35 + 0.13 * watts * (1 + 0.01 * one.index) + extra));
    }
    b.run(1);
  }
}

}  // namespace

TEST_CASE("a device that turns warmer than its peers at the same power is a warning, and no more than that") {
  test::bench b(fb::HwVendor::Ascend, 8);
  serve(b, 60, 0, 0);
  CHECK(b.told.empty());
  serve(b, 8, 11, 11);
  const auto found = b.standing("peer-temperature");
  REQUIRE(found);
  CHECK(found->who.device == 2U);
  CHECK(found->grade == severity::Warning);
  CHECK(found->act == action::Watch);
  serve(b, 14, 0, 0);
  CHECK(b.rules.book().size() == 0);
}

TEST_CASE("a slow drift is found though each step of it is nothing") {
  test::bench b(fb::HwVendor::Ascend, 8);
  serve(b, 90, 0, 0);
  serve(b, 300, 9, 0);
  const auto found = b.standing("drift");
  REQUIRE(found);
  CHECK(found->who.device == 2U);
  CHECK(found->grade == severity::Warning);
  for (const auto& one : b.told) CHECK(one->who.device == 2U);
}

TEST_CASE("a room that warms up for all is no fault of anybody") {
  test::bench b(fb::HwVendor::Ascend, 8);
  serve(b, 60, 0, 0);
  for (int s = 0; s < 3600; ++s) {
    for (auto& one : b.sample.devices) one.values.set(metric::Temperature, 62.0 + s / 300);
    b.run(1);
  }
  CHECK(b.told.empty());
}

}  // namespace infernex::diagnosis
