#include "monitor/collector.hpp"

#include <doctest/doctest.h>

using namespace infernex;
using namespace infernex::monitor;

namespace {

poll_time at(std::uint64_t ms) { return {100'000 + ms, 1'000'000'000'000 + ms * 1'000'000}; }

reading_round one_device(metric id, double value, std::uint32_t age_ms = 0) {
  reading_round found;
  auto& device = found.devices.emplace_back();
  device.vendor = fb::HwVendor::Ascend;
  device.values.set(id, value, 0, age_ms);
  return found;
}

reading_round with_codes(std::vector<std::uint64_t> codes) {
  auto found = one_device(metric::Temperature, 50);
  found.devices[0].codes = std::move(codes);
  return found;
}

reading_round refusing(std::int32_t code) {
  reading_round found;
  auto& device = found.devices.emplace_back();
  device.vendor = fb::HwVendor::Ascend;
  device.failures.emplace_back(metric::Health, code);
  return found;
}

collector plain() {
  collector_settings how;
  how.node = "n0";
  return collector(how);
}

}  // namespace

TEST_CASE("a reading is told with its age until it is too old") {
  auto all = plain();
  all.on_round(fb::HwSource::Dcmi, 0, one_device(metric::Temperature, 51, 200), at(0));
  auto report = all.report(at(1000));
  REQUIRE(report.sample->devices.size() == 1);
  const auto* reading = report.sample->devices[0].values.find(metric::Temperature);
  REQUIRE(reading);
  CHECK(reading->age_ms() == 1200);
  CHECK_FALSE(all.report(at(400'000)).sample->devices[0].values.get(metric::Temperature));
}

TEST_CASE("the better source's reading stays until it is stale, then the worse one's will do") {
  auto all = plain();
  const auto power = [&](std::uint64_t ms) { return *all.report(at(ms)).sample->devices[0].values.get(metric::Power); };
  all.on_round(fb::HwSource::NpuSmi, 1, one_device(metric::Power, 90), at(0));
  all.on_round(fb::HwSource::Dcmi, 0, one_device(metric::Power, 95), at(100));
  all.on_round(fb::HwSource::NpuSmi, 1, one_device(metric::Power, 91), at(5000));
  CHECK(power(5000) == 95);
  all.on_round(fb::HwSource::NpuSmi, 1, one_device(metric::Power, 92), at(11'000));
  CHECK(power(11'000) == 92);
  all.on_round(fb::HwSource::Dcmi, 0, one_device(metric::Power, 96), at(11'100));
  CHECK(power(11'200) == 96);
}

TEST_CASE("codes that come and go are events, once each") {
  auto all = plain();
  all.on_round(fb::HwSource::Dcmi, 0, with_codes({}), at(0));
  CHECK(all.report(at(0)).events.empty());
  all.on_round(fb::HwSource::Dcmi, 0, with_codes({0x80E01801, 0x81078603}), at(1000));
  all.on_round(fb::HwSource::Dcmi, 0, with_codes({0x81078603, 0x80E01801}), at(2000));
  auto events = all.report(at(2000)).events;
  REQUIRE(events.size() == 2);
  CHECK(events[0].code == 0x80E01801);
  CHECK(events[0].assertion == fb::HwAssertion::Raised);
  CHECK(events[0].node == "n0");
  CHECK(events[0].device == 0);
  all.on_round(fb::HwSource::Dcmi, 0, with_codes({0x81078603}), at(3000));
  events = all.report(at(3000)).events;
  REQUIRE(events.size() == 1);
  CHECK(events[0].code == 0x80E01801);
  CHECK(events[0].assertion == fb::HwAssertion::Cleared);
  // A round that could not read them says nothing of them.
  all.on_round(fb::HwSource::Dcmi, 0, one_device(metric::Temperature, 50), at(4000));
  CHECK(all.report(at(4000)).events.empty());
}

TEST_CASE("not ready for five seconds is a dropped card, a moment is not") {
  auto all = plain();
  all.on_round(fb::HwSource::Dcmi, 0, refusing(-8012), at(0));
  all.on_round(fb::HwSource::Dcmi, 0, one_device(metric::Temperature, 50), at(1000));
  all.on_round(fb::HwSource::Dcmi, 0, refusing(-8012), at(2000));
  all.on_round(fb::HwSource::Dcmi, 0, refusing(-8012), at(6000));
  CHECK(all.report(at(6000)).events.empty());
  all.on_round(fb::HwSource::Dcmi, 0, refusing(-8012), at(7000));
  auto report = all.report(at(7000));
  REQUIRE(report.events.size() == 2);
  CHECK(report.events[0].code == 0x40F84E00);
  CHECK(report.events[0].assertion == fb::HwAssertion::Raised);
  CHECK(report.events[1].kind == fb::HwEventKind::CardDrop);
  CHECK(report.inventory);
  all.on_round(fb::HwSource::Dcmi, 0, one_device(metric::Temperature, 50), at(60'000));
  report = all.report(at(60'000));
  REQUIRE(report.events.size() == 2);
  CHECK(report.events[0].assertion == fb::HwAssertion::Cleared);
}

TEST_CASE("a hung call is an event and a reading, and the others go on") {
  auto all = plain();
  auto both = one_device(metric::Temperature, 50);
  both.devices.push_back(both.devices[0]);
  both.devices[1].index = 1;
  all.on_round(fb::HwSource::Dcmi, 0, std::move(both), at(0));
  all.on_busy(1, fb::HwSource::Dcmi, 4000, 5000, at(4000));
  CHECK(all.report(at(4000)).events.empty());
  all.on_busy(1, fb::HwSource::Dcmi, 60'000, 5000, at(60'000));
  all.on_round(fb::HwSource::Dcmi, 0, one_device(metric::Temperature, 51), at(60'000));
  auto report = all.report(at(60'000));
  REQUIRE(report.events.size() == 1);
  CHECK(report.events[0].kind == fb::HwEventKind::DriverHang);
  CHECK(report.events[0].code == 60'000);
  CHECK(*report.sample->devices[1].values.get(metric::DriverHangMs) == 60'000);
  CHECK(report.sample->devices[1].values.find(metric::Temperature)->age_ms() == 60'000);
  CHECK(report.sample->devices[0].values.find(metric::Temperature)->age_ms() == 0);
  all.on_busy(1, fb::HwSource::Dcmi, 0, 5000, at(61'000));
  report = all.report(at(61'000));
  REQUIRE(report.events.size() == 1);
  CHECK(report.events[0].assertion == fb::HwAssertion::Cleared);
  CHECK_FALSE(report.sample->devices[1].values.get(metric::DriverHangMs));
}

TEST_CASE("an event that names a PCI address is of the device that has it") {
  auto all = plain();
  reading_round found;
  found.infos.resize(2);
  found.infos[0].bus_id = "0000:5D:00.0";
  found.infos[1].index = 1;
  found.infos[1].bus_id = "0000:5E:00.0";
  found.events.resize(3);
  found.events[0].bus_id = "0000:5e:00";
  found.events[1].bus_id = "0000:5e:0";
  found.events[2].bus_id = "0000:60:00";
  all.on_round(fb::HwSource::KernelLog, 0, std::move(found), at(0));
  const auto events = all.report(at(0)).events;
  REQUIRE(events.size() == 3);
  CHECK(events[0].device == 1);
  CHECK(events[0].source == fb::HwSource::KernelLog);
  CHECK_FALSE(events[1].device.has_value());
  CHECK_FALSE(events[2].device.has_value());
}

TEST_CASE("the inventory is told on change and every minute, and sources add to one another") {
  auto all = plain();
  reading_round found;
  found.infos.emplace_back();
  found.infos[0].model = "910B4";
  found.problems = {"no libdcmi.so"};
  all.on_round(fb::HwSource::NpuSmi, 1, reading_round(found), at(0));
  auto first = all.report(at(0)).inventory;
  REQUIRE(first);
  CHECK(first->devices[0]->model == "910B4");
  CHECK(first->problems == std::vector<std::string>{"no libdcmi.so"});
  all.on_round(fb::HwSource::NpuSmi, 1, reading_round(found), at(1000));
  CHECK_FALSE(all.report(at(1000)).inventory);
  found.infos[0].model.clear();
  found.infos[0].firmware = "7.5";
  all.on_round(fb::HwSource::HccnTool, 2, reading_round(found), at(2000));
  const auto second = all.report(at(2000)).inventory;
  REQUIRE(second);
  CHECK(second->devices[0]->model == "910B4");
  CHECK(second->devices[0]->firmware == "7.5");
  CHECK(all.report(at(62'000)).inventory);
}
