#include "tests/unit/diagnosis/support.hpp"

namespace infernex::diagnosis {

using test::bench;
using vendor = fb::HwVendor;
using kind = fb::HwEventKind;

TEST_CASE("a code that comes raises its rule at once, with evidence, and clears ten seconds after it has gone") {
  bench b(vendor::Ascend);
  b.run(5);
  b.code(0x80E01801);
  b.run(1);
  const auto found = b.standing("ascend-hbm-multi-bit");
  REQUIRE(found);
  CHECK(found->grade == severity::Major);
  CHECK(found->act == action::Isolate);
  CHECK(found->pattern == "hbm-multi-bit-ecc");
  REQUIRE(found->grounds.size() == 1);
  CHECK(found->grounds[0].code == 0x80E01801U);
  CHECK(found->grounds[0].times.size() == 1);
  CHECK(!found->treatment.empty());
  CHECK(b.rules.at("n0", 0).act == action::Isolate);
  // Its table says it too, but the rule speaks of it.
  CHECK(b.rules.book().size() == 1);
  b.no_codes();
  b.run(9);
  CHECK(b.standing("ascend-hbm-multi-bit"));
  b.run(5);
  CHECK(!b.standing("ascend-hbm-multi-bit"));
  CHECK(b.rules.at("n0", 0).act == action::Ok);
  CHECK(b.told.back()->id == found->id);
  CHECK(b.told.back()->cleared_at > found->raised_at);
}

TEST_CASE("codes without a rule are told by their level, those without a public text by the level alone") {
  bench b(vendor::Ascend);
  b.run(2);
  // What happens to a device is told of the device alone, whichever way it comes.
  b.tell(kind::AscendCode, 0x80C78008, fb::HwAssertion::Raised, fb::HwLevel::Major);
  CHECK(b.rules.book().size() == 1);
  b.tell(kind::AscendCode, 0x80C78008, fb::HwAssertion::Cleared, fb::HwLevel::Major);
  b.code(0x80C78008);  // RestartNPU, with a text
  b.run(1);
  auto found = b.standing("ascend-code:80C78008");
  REQUIRE(found);
  CHECK(found->act == action::Isolate);
  CHECK(found->title.find("task scheduler") != std::string::npos);
  b.no_codes();
  b.code(0x80E21007);  // NotHandleFault: nothing
  b.run(3);
  CHECK(b.rules.book().size() == 0);
  // One that nobody knows, from an event that calls it grave.
  b.tell(kind::AscendCode, 0x1234567, fb::HwAssertion::Raised, fb::HwLevel::Major);
  found = b.standing("ascend-code:1234567");
  REQUIRE(found);
  CHECK(found->grade == severity::Critical);
  CHECK(found->title == "Code 1234567: not known to us");
  b.tell(kind::AscendCode, 0x1234567, fb::HwAssertion::Cleared, fb::HwLevel::Major);
  CHECK(b.rules.book().size() == 0);
  b.tell(kind::AscendCode, 0x1234568, fb::HwAssertion::Raised, fb::HwLevel::Minor);
  CHECK(b.rules.book().size() == 0);
}

TEST_CASE("codes over the bound of a device are shed and counted, and those that go make room") {
  bench b(vendor::Ascend);
  b.run(2);
  for (std::uint64_t i = 0; i < 40; ++i) b.code(0x7000000 + i);
  b.run(3);
  CHECK(b.rules.book().size() == patient::most_codes);
  CHECK(b.rules.counts().refused > 0);
  b.no_codes();
  b.run(3);
  CHECK(b.rules.book().size() == 0);
  b.code(0x80C78008);
  b.run(1);
  CHECK(b.standing("ascend-code:80C78008"));
}

TEST_CASE("a reset does not hide a code that is still there") {
  bench b(vendor::Ascend);
  b.run(2);
  b.code(0x40F84E00);
  b.run(1);
  REQUIRE(b.standing("ascend-card-drop"));
  b.tell(kind::DeviceReset);
  b.run(20);
  CHECK(b.standing("ascend-card-drop"));
}

TEST_CASE("a request to repeat becomes an isolation when it lasts a minute") {
  bench b(vendor::Ascend);
  b.run(2);
  b.code(0x80BB8000);
  b.run(2);
  const auto id = b.standing("ascend-code:80BB8000")->id;
  CHECK(b.rules.at("n0", 0).act == action::Watch);
  b.run(60);
  CHECK(b.rules.at("n0", 0).act == action::Isolate);
  CHECK(b.standing("ascend-code:80BB8000")->id == id);
  CHECK(b.standing("ascend-code:80BB8000")->state == fb::VerdictState::Changed);
}

TEST_CASE("counts that exist at the start are no new fault; a rise is; a fall is a new baseline") {
  bench b(vendor::Ascend);
  b.set(metric::EccDoubleLifetime, 1778);
  b.set(metric::EccSingle, 3000);
  b.run(10);
  CHECK(b.rules.book().size() == 0);
  b.set(metric::EccSingle, 0);
  b.run(2);
  b.set(metric::EccSingle, 20);
  b.run(2);
  CHECK(b.rules.book().size() == 0);
  b.set(metric::EccDoubleLifetime, 1779);
  b.run(1);
  CHECK(b.standing("hbm-degrading"));
  b.set(metric::EccSingle, 30);
  b.run(1);
  CHECK(b.standing("ascend-hbm-many"));
  // After a day without more, both are over; hysteresis of an hour for the rate.
  b.run(86'400);
  CHECK(!b.standing("hbm-degrading"));
  b.run(3'700);
  CHECK(b.rules.book().size() == 0);
}

TEST_CASE("raise and clear have windows of their own") {
  bench b(vendor::Ascend);
  b.set(metric::PortState, 1);
  b.run(3);
  b.set(metric::PortState, 0);
  b.run(15);
  b.set(metric::PortState, 1);
  b.run(5);
  CHECK(b.raised("ascend-port-down") == 0);
  b.set(metric::PortState, 0);
  b.run(19);
  CHECK(b.raised("ascend-port-down") == 0);
  b.run(3);
  CHECK(b.raised("ascend-port-down") == 1);
  b.set(metric::PortState, 1);
  b.run(50);
  CHECK(b.standing("ascend-port-down"));
  b.set(metric::PortState, 0);
  b.run(2);
  b.set(metric::PortState, 1);
  b.run(58);
  CHECK(b.standing("ascend-port-down"));
  b.run(5);
  CHECK(!b.standing("ascend-port-down"));
  CHECK(b.raised("ascend-port-down") == 1);
}

TEST_CASE("a value that is only repeated, older each time, confirms nothing") {
  bench b(vendor::Ascend);
  b.set(metric::PortState, 1);
  b.run(3);
  for (std::uint32_t age = 0; age < 60'000; age += 1'000) {
    b.device().values.set(metric::PortState, 0, 0, age);
    b.run(1);
  }
  CHECK(b.raised("ascend-port-down") == 0);
  b.device().values.set(metric::PortState, 0, 0, 0);
  b.run(1);
  CHECK(b.raised("ascend-port-down") == 1);
}

TEST_CASE("the root cause takes its symptoms over, and they ask for nothing") {
  bench b(vendor::Ascend);
  b.set(metric::PortState, 1);
  b.run(3);
  b.set(metric::PortState, 0);
  b.run(25);
  REQUIRE(b.standing("ascend-port-down"));
  CHECK(b.standing("ascend-port-down")->suppressed_by.empty());
  b.device().failures.emplace_back(metric::Health, -8012);
  b.run(1);
  const auto root = b.standing("ascend-card-drop");
  REQUIRE(root);
  CHECK(b.standing("ascend-port-down")->suppressed_by == root->id);
  CHECK(b.standing("ascend-port-down")->state == fb::VerdictState::Changed);
  const auto message = to_message(*b.standing("ascend-port-down"), b.rules.at("n0", 0));
  CHECK(message.action == action::Ok);
  CHECK(message.device_action == action::Isolate);
  CHECK(message.open.size() == 2);
  // The card is back, its port is not: after a while that stands for itself.
  b.device().failures.clear();
  b.run(12);
  CHECK(!b.standing("ascend-card-drop"));
  b.run(130);
  CHECK(b.standing("ascend-port-down")->suppressed_by.empty());
}

TEST_CASE("silence is a fault of the device while its node reports, of the node while others do") {
  bench b(vendor::Ascend, 2);
  monitor::node_sample other;
  other.node = "n1";
  const auto second = [&](bool first, bool both) {
    b.now += 1000;
    auto shown = b.sample;
    if (!both) shown.devices.pop_back();
    if (first) b.rules.on_sample(shown, b.now);
    b.rules.on_sample(other, b.now);
    b.rules.on_tick(b.now);
  };
  for (int i = 0; i < 20; ++i) second(true, true);
  for (int i = 0; i < 3; ++i) second(true, false);
  CHECK(b.rules.book().size() == 0);
  for (int i = 0; i < 3; ++i) second(true, false);
  REQUIRE(b.standing("telemetry-lost"));
  CHECK(b.standing("telemetry-lost")->who.device == 1U);
  CHECK(b.rules.at("n0", 1).act == action::Watch);
  for (int i = 0; i < 61; ++i) second(true, false);
  CHECK(b.rules.at("n0", 1).act == action::Isolate);
  for (int i = 0; i < 5; ++i) second(true, true);
  CHECK(b.rules.book().size() == 0);
  for (int i = 0; i < 12; ++i) second(false, false);
  REQUIRE(b.standing("node-silent"));
  CHECK(!b.standing("node-silent")->who.device);
  CHECK(b.rules.book().size() == 1);
  for (int i = 0; i < 5; ++i) second(true, true);
  CHECK(b.rules.book().size() == 0);
}

TEST_CASE("when nobody is heard it is not the fleet that failed") {
  bench b(vendor::Ascend);
  monitor::node_sample other;
  other.node = "n1";
  b.run(10);
  b.rules.on_sample(other, b.now);
  for (int i = 0; i < 100; ++i) b.rules.on_tick(b.now += 1000);
  CHECK(b.rules.book().size() == 0);
}

TEST_CASE("what is not measured is no fault, and is named as missing") {
  bench b(vendor::Ascend);
  b.run(100);
  CHECK(b.rules.book().size() == 0);
  b.set(metric::AicoreUtilization, 100);
  b.set(metric::MemoryBandwidthUtilization, 0);
  b.run(100);
  const auto found = b.standing("hang");
  REQUIRE(found);
  CHECK(found->missing == std::vector<std::string>{"utilization", "power", "process_count"});
  CHECK(found->grounds.size() == 2);
  CHECK(found->grounds[0].times.size() > 5);
}

TEST_CASE("another device in the place of a faulty one is a new one") {
  bench b(vendor::Ascend);
  b.set(metric::RetiredPagesDouble, 64);
  b.run(2);
  CHECK(b.standing("ascend-hbm-worn"));
  b.device().id = "another";
  b.set(metric::RetiredPagesDouble, 2);
  b.run(2);
  CHECK(b.rules.book().size() == 0);
}

TEST_CASE("a reload of the rules starts over and finds again what is still so") {
  bench b(vendor::Ascend);
  b.set(metric::RetiredPagesDouble, 64);
  b.run(2);
  const auto id = b.standing("ascend-hbm-worn")->id;
  b.rules.reload(test::embedded(), b.now);
  CHECK(b.rules.book().size() == 0);
  b.run(1);
  REQUIRE(b.standing("ascend-hbm-worn"));
  CHECK(b.standing("ascend-hbm-worn")->id != id);
}

TEST_CASE("memory of a device is bounded, and so is their number") {
  bench b(vendor::Nvidia, 8);
  for (std::size_t m = 1; m < monitor::metric_count; ++m)
    for (std::uint16_t part = 0; part < 20; ++part)
      for (auto& one : b.sample.devices) one.values.set(static_cast<metric>(m), 1, part);
  b.run(30);
  for (std::uint64_t x = 1; x < 200; ++x) b.tell(kind::Xid, x);
  b.run(200);
  CHECK(b.rules.bytes() / b.rules.devices() < 16'384);

  engine_limits few;
  few.max_nodes = 1;
  few.max_devices = 2;
  engine small(test::embedded(), few);
  small.on_sample(b.sample, 1000);
  CHECK(small.devices() == 2);
  b.sample.node = "other";
  small.on_sample(b.sample, 1000);
  CHECK(small.nodes() == 1);
  CHECK(small.counts().refused == 7);
}

TEST_CASE("a window counts nothing that is older") {
  window_count w;
  w.add(1'000, 24'000, 3);
  CHECK(w.sum(1'000, 24'000) == 3);
  w.add(20'000, 24'000, 2);
  CHECK(w.sum(22'000, 24'000) == 5);
  CHECK(w.sum(26'000, 24'000) == 2);
  CHECK(w.sum(100'000, 24'000) == 0);
  w.add(1'000'000'000, 24'000, 1);
  CHECK(w.sum(1'000'000'500, 24'000) == 1);
}

}  // namespace infernex::diagnosis
