#include "monitor/device_sample.hpp"

#include <limits>
#include <set>

#include <doctest/doctest.h>

using namespace infernex;
using monitor::metric;

namespace {

monitor::node_sample two_devices() {
  monitor::node_sample sample;
  sample.node = "n0";
  sample.source = "monitor/n0";
  sample.epoch = 5;
  sample.sequence = 9;
  sample.time = 1'000'000'000;
  sample.values.set(metric::NodeLoad1, 2.5);
  sample.devices.resize(2);
  auto& first = sample.devices[0];
  first.vendor = fb::HwVendor::Ascend;
  first.id = "vdie";
  first.values.set(metric::Temperature, 51.0);
  first.values.set(metric::OpticalTxPower, 0.9, 1, 60'000);
  first.values.set(metric::OpticalTxPower, 0.8, 0, 60'000);
  first.codes.emplace();
  auto& second = sample.devices[1];
  second.index = 1;
  second.codes = {0x80E01801, 0x200001002};
  second.codes_age_ms = 40;
  second.failures.emplace_back(metric::Health, -8012);
  return sample;
}

monitor::node_sample through_a_message(const monitor::node_sample& sample, std::size_t* left_out = nullptr) {
  const auto message = view<fb::HwSample>::verify(chunk::copy_of(bytes_of(monitor::pack(sample))));
  REQUIRE(message);
  monitor::node_sample back;
  const auto count = monitor::unpack(**message, back);
  if (left_out) *left_out = count;
  return back;
}

}  // namespace

TEST_CASE("readings are in order, whatever the order they came in, and the last of equals stays") {
  monitor::readings values;
  CHECK(values.set(metric::Power, 90.0));
  CHECK(values.set(metric::Temperature, 50.0));
  CHECK(values.set(metric::LinkState, 1, 3));
  CHECK(values.set(metric::LinkState, 0, 1));
  CHECK(values.set(metric::Power, 95.0, 0, 7));
  REQUIRE(values.size() == 4);
  CHECK(values.all()[0].metric() == metric::Temperature);
  CHECK(*values.get(metric::Power) == 95.0);
  CHECK(values.find(metric::Power)->age_ms() == 7);
  CHECK_FALSE(values.get(metric::LinkState));
  REQUIRE(values.parts(metric::LinkState).size() == 2);
  CHECK(values.parts(metric::LinkState)[0].part() == 1);
  values.erase(metric::Temperature);
  CHECK_FALSE(values.get(metric::Temperature));
  CHECK(values.parts(metric::Utilization).empty());
}

TEST_CASE("what cannot be a reading is none") {
  monitor::readings values;
  CHECK_FALSE(values.set(metric::Utilization, 101));
  CHECK_FALSE(values.set(metric::Power, -1));
  CHECK_FALSE(values.set(metric::Temperature, -275));
  CHECK_FALSE(values.set(metric::EccSingle, 4294967295.0));
  CHECK_FALSE(values.set(metric::Temperature, std::numeric_limits<double>::quiet_NaN()));
  CHECK_FALSE(values.set(metric::Temperature, std::optional<double>{}));
  CHECK(values.set(metric::TemperatureMargin, -3));
  CHECK(values.set(metric::Utilization, 0));
  CHECK(values.size() == 2);
}

TEST_CASE("ages grow, and do not wrap") {
  monitor::readings values;
  values.set(metric::Power, 1, 0, 10);
  values.set(metric::Voltage, 1, 0, 4'294'967'290U);
  values.grow_older(100);
  CHECK(values.find(metric::Power)->age_ms() == 110);
  CHECK(values.find(metric::Voltage)->age_ms() == 4'294'967'295U);
}

TEST_CASE("a sample goes through a message unchanged") {
  const auto back = through_a_message(two_devices());
  CHECK(back.node == "n0");
  CHECK(back.source == "monitor/n0");
  CHECK(back.epoch == 5);
  CHECK(back.sequence == 9);
  CHECK(back.time == 1'000'000'000);
  CHECK(*back.values.get(metric::NodeLoad1) == 2.5);
  REQUIRE(back.devices.size() == 2);
  const auto* first = back.find(0);
  REQUIRE(first);
  CHECK(first->id == "vdie");
  CHECK(*first->values.get(metric::OpticalTxPower, 1) == 0.9);
  CHECK(first->values.find(metric::OpticalTxPower, 1)->age_ms() == 60'000);
  REQUIRE(first->codes);  // read, and none
  CHECK(first->codes->empty());
  const auto* second = back.find(1);
  REQUIRE(second);
  CHECK(second->vendor == fb::HwVendor::Unknown);
  REQUIRE(second->codes);
  CHECK(*second->codes == std::vector<std::uint64_t>{0x80E01801, 0x200001002});
  REQUIRE(second->failures.size() == 1);
  CHECK(second->failures[0].code() == -8012);
  CHECK_FALSE(back.find(2));
}

TEST_CASE("memory that is used again keeps nothing of the message before") {
  monitor::node_sample into;
  const auto full = view<fb::HwSample>::verify(chunk::copy_of(bytes_of(monitor::pack(two_devices()))));
  REQUIRE(full);
  monitor::unpack(**full, into);
  monitor::node_sample plain;
  plain.devices.resize(1);
  const auto next = view<fb::HwSample>::verify(chunk::copy_of(bytes_of(monitor::pack(plain))));
  REQUIRE(next);
  monitor::unpack(**next, into);
  REQUIRE(into.devices.size() == 1);
  CHECK(into.devices[0].values.empty());
  CHECK_FALSE(into.devices[0].codes);
  CHECK(into.devices[0].failures.empty());
  CHECK(into.node.empty());
  CHECK(into.values.empty());
}

TEST_CASE("a sender that keeps no order and says nonsense is read as far as it makes sense") {
  fb::HwSampleT message;
  for (int i = 0; i < 2; ++i) {
    auto device = std::make_unique<fb::HwDeviceT>();
    device->index = 4;
    device->values.emplace_back(metric::Power, 0, 0, 80.0 + i);
    device->values.emplace_back(metric::Temperature, 0, 0, 1e300);
    device->values.emplace_back(metric::Temperature, 0, 0, 40.0);
    device->values.emplace_back(metric::Temperature, 0, 0, 41.0);
    device->values.emplace_back(static_cast<metric>(60'000), 0, 0, -7.0);
    message.devices.push_back(std::move(device));
  }
  const auto sent = view<fb::HwSample>::verify(chunk::copy_of(bytes_of(encode(message))));
  REQUIRE(sent);
  monitor::node_sample back;
  CHECK(monitor::unpack(**sent, back) == 2);  // the impossible temperature, and the one said twice
  REQUIRE(back.devices.size() == 1);
  CHECK(*back.devices[0].values.get(metric::Power) == 80.0);
  CHECK(*back.devices[0].values.get(metric::Temperature) == 40.0);
  CHECK(*back.devices[0].values.get(static_cast<metric>(60'000)) == -7.0);
}

TEST_CASE("every metric has a name of its own, that of the schema") {
  std::set<std::string_view> names;
  for (auto id : fb::EnumValuesHwMetric()) {
    const auto& row = monitor::info(id);
    CHECK(row.id == id);
    CHECK(names.insert(row.name).second);
    std::string in_schema;
    for (char c : std::string_view(fb::EnumNameHwMetric(id))) {
      if (c >= 'A' && c <= 'Z' && !in_schema.empty()) in_schema += '_';
      in_schema += static_cast<char>(c >= 'A' && c <= 'Z' ? c + 32 : c);
    }
    CHECK(row.name == in_schema);
    CHECK(row.least <= row.most);
    if (id != metric::Unknown) CHECK(monitor::find_metric(row.name) == id);
  }
  CHECK(names.size() == monitor::metric_count);
  CHECK_FALSE(monitor::find_metric("unknown"));
  CHECK(monitor::info(static_cast<metric>(60'000)).id == metric::Unknown);
}
