// Each fault shows as the real hardware would show it (codes and limits: the rules it is there to test).
#include <doctest/doctest.h>

#include "tests/unit/monitor/sim_run.hpp"

using namespace infernex;
using namespace infernex::monitor;

namespace {

constexpr auto raised = fb::HwAssertion::Raised;
constexpr auto cleared = fb::HwAssertion::Cleared;
constexpr auto ascend_code = fb::HwEventKind::AscendCode;

double value(const sim_node& node, std::uint32_t device, metric id, std::uint16_t part = 0) {
  const auto* found = node.sample().find(device);
  REQUIRE(found);
  const auto read = found->values.get(id, part);
  REQUIRE(read);
  return *read;
}

}  // namespace

TEST_CASE("thermal throttling: hot, slower than rated while it works, until the airflow is back") {
  sim_run ascend("ascend-910b");
  std::size_t throttled = 0;
  const auto truth = ascend.with(fault_kind::thermal_throttling, 2, 600, 1200).go(2400, [&](const auto& node, auto) {
    const bool slow = value(node, 2, metric::CoreClock) < value(node, 2, metric::RatedCoreClock);
    if (slow && value(node, 2, metric::AicoreUtilization) > 0 && value(node, 2, metric::Temperature) >= 105)
      ++throttled;
    if (node.now_ms() > 2'000'000) CHECK_FALSE(slow);
  });
  CHECK(throttled > 600);
  REQUIRE(truth[0].visible_ms);
  CHECK(*truth[0].visible_ms > 600'000);
  CHECK(*truth[0].visible_ms < 900'000);
  CHECK(*truth[0].ended_ms == 1'800'000);
  CHECK(ascend.count(ascend_code, 0x80E20207, raised) == 1);
  CHECK(ascend.count(ascend_code, 0x80E20207, cleared) == 1);

  sim_run nvidia("nvidia-h100");
  throttled = 0;
  nvidia.with(fault_kind::thermal_throttling, 2, 600, 1200).go(1800, [&](const auto& node, auto) {
    const auto reasons = static_cast<unsigned>(value(node, 2, metric::ClockReasons));
    if ((reasons & 0x40U) && value(node, 2, metric::TemperatureMargin) < value(node, 2, metric::MarginSlowdown))
      ++throttled;
  });
  CHECK(throttled > 600);
}

TEST_CASE("power brake: half the clock, and who says so") {
  sim_run nvidia("nvidia-h100");
  double seconds = 0;
  nvidia.with(fault_kind::power_brake, 1, 60, 600, 0.5).go(660, [&](const auto& node, std::uint64_t s) {
    const auto reasons = static_cast<unsigned>(value(node, 1, metric::ClockReasons));
    CHECK(((reasons & 0x80U) != 0) == (s >= 60 && s < 660));
    if (s == 100) CHECK(value(node, 1, metric::CoreClock) < 1000);
    if (s == 659) seconds = value(node, 1, metric::PowerBrakeSeconds);
  });
  CHECK(seconds == 600);
  sim_run ascend("ascend-910b");
  ascend.with(fault_kind::power_brake, 1, 60, 600, 0.5).go(700, [](const auto&, auto) {});
  CHECK(ascend.count(ascend_code, 0x80E3A201, raised) == 1);
  CHECK(ascend.count(ascend_code, 0x80E3A201, cleared) == 1);
}

TEST_CASE("memory faults of an Ascend") {
  sim_run run("ascend-910b");
  run.with(fault_kind::ecc_double, 0, 60, 100).with(fault_kind::page_limit, 1, 60, 100);
  run.with(fault_kind::ecc_single, 2, 60, 7200, 6).with(fault_kind::page_retirement, 3, 60, 600, 4);
  run.with(fault_kind::memory_halved, 4, 60, 100);
  double pages_before = 0;
  std::string before;
  const auto truths = run.go(7300, [&](const auto& node, std::uint64_t s) {
    if (s == 0) pages_before = value(node, 3, metric::RetiredPagesDouble);
    if (s == 0) before = node.sample().find(1)->id;
    if (s == 100) {
      CHECK(value(node, 0, metric::EccDouble) == 1);
      CHECK(value(node, 0, metric::Health) == 3);
      CHECK(*node.sample().find(0)->codes == std::vector<std::uint64_t>{0x80E01801});
      CHECK(value(node, 1, metric::RetiredPagesDouble) >= 64);
      CHECK(value(node, 4, metric::MemoryTotal) == 16384.0 * 1048576);
    }
    if (s == 300) {
      CHECK(value(node, 0, metric::EccDouble) == 0);
      CHECK(value(node, 0, metric::EccDoubleLifetime) >= 1);
      CHECK(node.sample().find(0)->codes->empty());
      CHECK(node.sample().find(1)->id != before);
    }
  });
  CHECK(run.count(ascend_code, 0x80E01801, raised) == 1);
  CHECK(run.count(ascend_code, 0x80E01801, cleared) == 1);
  CHECK(run.count(ascend_code, 0x80E18402, raised) == 1);
  for (const auto& truth : truths) {
    CAPTURE(info(truth.fault.kind).name);
    CHECK(truth.visible_ms);
    if (truth.fault.kind == fault_kind::ecc_single) CHECK(*truth.visible_ms > 60'000 + 200'000);
  }
}

TEST_CASE("memory faults of an NVIDIA") {
  sim_run run("nvidia-h100");
  run.with(fault_kind::ecc_double, 0, 60, 100).with(fault_kind::row_remap_pending, 1, 60, 100);
  run.with(fault_kind::row_remap_failure, 2, 60, 100);
  run.go(200, [&](const auto& node, std::uint64_t s) {
    CHECK(value(node, 1, metric::RowRemapPending) == (s >= 60 && s < 160 ? 1 : 0));
    CHECK(value(node, 2, metric::RowRemapFailure) == (s >= 60 && s < 160 ? 1 : 0));
    if (s == 100) CHECK(value(node, 0, metric::EccDouble) == 1);
    if (s == 100) CHECK(value(node, 0, metric::RowRemapPending) == 1);
    if (s == 170) CHECK(value(node, 0, metric::EccDouble) == 0);
  });
  CHECK(run.xids(48) == 1);
  CHECK(run.xids(63) == 2);
  CHECK(run.xids(94) + run.xids(95) == 1);
  CHECK(run.xids(64) == 1);
  REQUIRE(run.inventories.size() == 2);  // the third device was replaced
  CHECK(run.inventories[0].devices[2]->serial != run.inventories[1].devices[2]->serial);
}

TEST_CASE("faults of ports and links") {
  sim_run ascend("ascend-910b");
  ascend.with(fault_kind::link_flap, 0, 60, 1800).with(fault_kind::port_down, 1, 60, 600);
  ascend.with(fault_kind::optical_module, 2, 60, 600, 1).with(fault_kind::network_misconfigured, 3, 60, 600);
  ascend.go(2000, [&](const auto& node, std::uint64_t s) {
    CHECK(value(node, 1, metric::PortState) == (s >= 60 && s < 660 ? 0 : 1));
    CHECK((value(node, 2, metric::OpticalRxPower, 1) < 0.1445) == (s >= 60 && s < 660));
    CHECK(value(node, 3, metric::FecMode) == (s >= 60 && s < 660 ? 0 : 1));
  });
  CHECK(ascend.count(ascend_code, 0x81078603, raised) >= 6);
  CHECK(ascend.count(ascend_code, 0x81078603, raised) == ascend.count(ascend_code, 0x81078603, cleared));

  sim_run nvidia("nvidia-h100");
  double replays = 0;
  nvidia.with(fault_kind::link_flap, 0, 60, 3000).with(fault_kind::link_errors, 1, 60, 600);
  nvidia.with(fault_kind::pcie_signal, 2, 60, 600, 2);
  const auto truths = nvidia.go(3100, [&](const auto& node, std::uint64_t s) {
    if (s == 120) CHECK(value(node, 1, metric::LinkState, 1) == 0);
    if (s == 120) CHECK(value(node, 1, metric::LinkState, 0) == 1);
    if (s == 120) replays = value(node, 2, metric::PcieReplays);
    if (s == 180) CHECK(value(node, 2, metric::PcieReplays) - replays > 31);
  });
  CHECK(nvidia.xids(74) == 1);
  CHECK(nvidia.count(fb::HwEventKind::PortChange, 0, raised) >= 3);
  for (const auto& truth : truths) CHECK(truth.visible_ms);
}

TEST_CASE("a card drops: the driver refuses, five seconds later it is gone, and it comes back") {
  for (const auto* model : {"ascend-910b", "nvidia-h100"}) {
    sim_run run(model);
    run.with(fault_kind::card_drop, 5, 60, 100).go(200, [&](const auto& node, std::uint64_t s) {
      const auto* device = node.sample().find(5);
      REQUIRE(device);
      CHECK(device->failures.size() == (s >= 60 && s < 160 ? 1 : 0));
      CHECK(device->values.empty() == (s >= 60 && s < 160));
      CHECK(*node.sample().values.get(metric::NodeDevicesFound) == (s >= 65 && s < 160 ? 7 : 8));
    });
    REQUIRE(run.inventories.size() == 3);
    CHECK_FALSE(run.inventories[1].devices[5]->present);
    CHECK(run.inventories[2].devices[5]->present);
    if (std::string_view(model) == "ascend-910b") {
      CHECK(run.count(ascend_code, 0x40F84E00, raised) == 1);
      CHECK(run.count(ascend_code, 0x40F84E00, cleared) == 1);
    } else {
      CHECK(run.xids(79) == 1);
    }
  }
}

TEST_CASE("what shows in readings only: a hang, a warm inlet, a slow drift, silence") {
  sim_run run("ascend-910b");
  run.with(fault_kind::hang, 0, 600, 300).with(fault_kind::hot_neighbour, 1, 600, 900);
  run.with(fault_kind::slow_drift, 2, 600, 7200).with(fault_kind::silent_telemetry, 3, 600, 100);
  double warm = 0;
  double cool = 0;
  const auto truths = run.go(9000, [&](const auto& node, std::uint64_t s) {
    if (s > 600 && s < 900) {
      CHECK(value(node, 0, metric::AicoreUtilization) == 100);
      CHECK(value(node, 0, metric::Power) < 92 + 0.1 * (300 - 92));
      CHECK(value(node, 0, metric::MemoryBandwidthUtilization) == 0);
      CHECK(value(node, 0, metric::ProcessCount) == 1);
    }
    CHECK((node.sample().find(3) == nullptr) == (s >= 600 && s < 700));
    if (s == 7700) warm = node.devices()[2].celsius - 0.13 * node.devices()[2].watts;
    if (s == 590) cool = node.devices()[2].celsius - 0.13 * node.devices()[2].watts;
  });
  CHECK(warm - cool > 5);
  CHECK(run.events.empty());
  for (const auto& truth : truths) CHECK(truth.visible_ms);
}

TEST_CASE("a hung driver: that device's readings get older, the others' do not") {
  sim_run run("ascend-910b");
  run.with(fault_kind::driver_hang, 6, 60, 60).go(130, [&](const auto& node, std::uint64_t s) {
    const auto* hung = node.sample().find(6);
    if (s == 119) {
      CHECK(*hung->values.get(metric::DriverHangMs) == 59'000);
      CHECK(hung->values.find(metric::Temperature)->age_ms() == 60'000);
      CHECK(node.sample().find(5)->values.find(metric::Temperature)->age_ms() == 0);
    }
    if (s == 121) CHECK(hung->values.find(metric::Temperature)->age_ms() == 0);
  });
  CHECK(run.count(fb::HwEventKind::DriverHang, 5000, raised) == 1);
}

TEST_CASE("a driver that does not fit, a node that says nothing, and any code") {
  sim_run ascend("ascend-910b");
  ascend.with(fault_kind::driver_mismatch, 1, 60, 60).with(fault_kind::code, 2, 60, 60, 1, 0x80C98000);
  ascend.with(fault_kind::silent_node, 0, 200, 60);
  ascend.go(300, [&](const auto& node, std::uint64_t s) {
    CHECK(value(node, 1, metric::Compatibility) == (s >= 60 && s < 120 ? 2 : 1));
    CHECK(node.silent() == (s >= 200 && s < 260));
  });
  CHECK(ascend.count(ascend_code, 0x80C98000, raised) == 1);
  sim_run nvidia("nvidia-h100");
  nvidia.with(fault_kind::driver_mismatch, 1, 60, 60).with(fault_kind::driver_fault, 2, 200, 60);
  nvidia.go(300, [&](const auto& node, std::uint64_t s) {
    for (const auto& device : node.sample().devices)
      CHECK((!device.failures.empty() && device.failures[0].code() == 18) == (s >= 60 && s < 120));
    if (s == 230) CHECK(value(node, 2, metric::RecoveryAction) == 1);
  });
  CHECK(nvidia.count(fb::HwEventKind::DriverError, 18, raised) == 1);
  CHECK(nvidia.xids(119) == 1);
}
