#include "messages/view.hpp"

#include <array>
#include <cstring>

#include <doctest/doctest.h>

#include "messages/decode.hpp"

using namespace infernex;

namespace {
fb::EngineLoadT sample_load() {
  fb::EngineLoadT load;
  load.origin = std::make_unique<fb::OriginT>();
  load.origin->id = "agent/e0";
  load.origin->epoch = 7;
  load.origin->sequence = 3;
  load.model = "m";
  load.instance = "e0";
  load.running = 0;
  load.kv_usage = 0.25;
  return load;
}
}  // namespace

TEST_CASE("a message round-trips, and unknown is not zero") {
  const auto buffer = encode(sample_load());
  const auto load = view<fb::EngineLoad>::verify(chunk::copy_of(bytes_of(buffer)));
  REQUIRE(load);
  CHECK(text((*load)->origin()->id()) == "agent/e0");
  REQUIRE((*load)->running().has_value());
  CHECK(*(*load)->running() == 0);
  CHECK_FALSE((*load)->waiting().has_value());
}

TEST_CASE("every truncation of a message that loses something is refused") {
  const auto buffer = encode(sample_load());
  const auto whole = bytes_of(buffer);
  const auto intact = *decode_to_json(whole);
  int refused = 0;
  for (std::size_t size = 0; size < whole.size(); ++size) {
    const auto cut = decode_to_json(whole.first(size));
    if (!cut)
      ++refused;
    else
      CHECK(*cut == intact);  // only padding was cut off
  }
  CHECK(refused >= static_cast<int>(whole.size()) - 3);
}

TEST_CASE("a message of another type, or over the bound, is named as such") {
  const auto buffer = encode(sample_load());
  const auto other = view<fb::KvDelta>::verify(chunk::copy_of(bytes_of(buffer)));
  REQUIRE_FALSE(other);
  CHECK(other.failure().code == errc::wrong_message_type);
  CHECK(render(other.failure()).find("EngineLoad") != std::string::npos);

  const std::vector<std::uint8_t> huge(max_message_bytes + 1);
  const auto big = view<fb::EngineLoad>::verify(chunk::copy_of(huge));
  REQUIRE_FALSE(big);
  CHECK(big.failure().code == errc::too_large);
}

TEST_CASE("any flipped byte is either refused or still safe to read") {
  const auto buffer = encode(sample_load());
  std::vector<std::uint8_t> bytes(bytes_of(buffer).begin(), bytes_of(buffer).end());
  int refused = 0;
  for (std::size_t i = 0; i < bytes.size(); ++i) {
    auto damaged = bytes;
    damaged[i] ^= 0xFF;
    const auto load = view<fb::EngineLoad>::verify(chunk::copy_of(damaged));
    if (!load)
      ++refused;
    else
      CHECK(text((*load)->model()).size() < damaged.size());
    const auto json = decode_to_json(damaged);  // must not crash either
    if (json) CHECK(json->front() == '{');
  }
  CHECK(refused > 8);
}

TEST_CASE("decode renders one line of JSON and names errors") {
  const auto json = decode_to_json(bytes_of(encode(sample_load())));
  REQUIRE(json);
  CHECK(json->find("{\"message\":\"EngineLoad\",\"body\":{") == 0);
  CHECK(json->find("\"kv_usage\": 0.25") != std::string::npos);
  CHECK(json->find("\"running\": 0") != std::string::npos);
  CHECK(json->find("\"waiting\": null") != std::string::npos);
  CHECK(json->find('\n') == std::string::npos);

  const std::array<std::uint8_t, 12> junk{1, 2, 3, 4, 'J', 'U', 'N', 'K'};
  CHECK(decode_to_json(junk).failure().code == errc::wrong_message_type);
  const auto whole = encode(sample_load());
  CHECK(decode_to_json(bytes_of(whole).first(20)).failure().code == errc::malformed_message);
}

TEST_CASE("a device's values are read by name, and what was not measured is not there") {
  fb::HwSampleT sample;
  sample.node = "n0";
  sample.values.emplace_back(fb::HwMetric::NodeLoad1, 0, 0, 1.5);
  auto device = std::make_unique<fb::HwDeviceT>();
  device->index = 3;
  device->vendor = fb::HwVendor::Ascend;
  device->values.emplace_back(fb::HwMetric::Temperature, 0, 40, 51.0);
  device->values.emplace_back(fb::HwMetric::OpticalTxPower, 2, 60'000, 0.0);
  sample.devices.push_back(std::move(device));
  const auto json = decode_to_json(bytes_of(encode(sample)));
  REQUIRE(json);
  CHECK(json->find("\"vendor\": \"Ascend\"") != std::string::npos);
  CHECK(json->find(R"({"metric": "Temperature","part": 0,"age_ms": 40,"value": 51.0})") != std::string::npos);
  CHECK(json->find(R"({"metric": "OpticalTxPower","part": 2,"age_ms": 60000,"value": 0.0})") != std::string::npos);
  CHECK(json->find("codes\":") == std::string::npos);
}

TEST_CASE("a verdict and an event tell numbers that are unknown from zero") {
  fb::HwEventT event;
  event.kind = fb::HwEventKind::AscendCode;
  event.code = 0x200001002ULL;
  event.assertion = fb::HwAssertion::Raised;
  const auto told = decode_to_json(bytes_of(encode(event)));
  REQUIRE(told);
  CHECK(told->find("\"code\": 8589938690") != std::string::npos);
  CHECK(told->find("\"device\": null") != std::string::npos);
  CHECK(told->find("\"assertion\": \"Raised\"") != std::string::npos);

  fb::VerdictT verdict;
  verdict.device = 0;
  verdict.action = fb::VerdictAction::Isolate;
  const auto said = decode_to_json(bytes_of(encode(verdict)));
  REQUIRE(said);
  CHECK(said->find("\"device\": 0") != std::string::npos);
  CHECK(said->find("\"confidence\": null") != std::string::npos);
  CHECK(said->find("\"action\": \"Isolate\"") != std::string::npos);

  fb::HwInventoryT inventory;
  inventory.devices.push_back(std::make_unique<fb::HwDeviceInfoT>());
  const auto listed = decode_to_json(bytes_of(encode(inventory)));
  REQUIRE(listed);
  CHECK(listed->find("\"present\": true") != std::string::npos);
  CHECK(listed->find("\"expected_devices\": null") != std::string::npos);
}

TEST_CASE("every root table is registered once") {
  std::vector<std::string_view> seen;
  for (const auto& row : every_root_table()) {
    CHECK(row.identifier.size() == 4);
    CHECK(row.schema.size() > 100);
    for (auto other : seen) CHECK(other != row.identifier);
    seen.push_back(row.identifier);
  }
  CHECK(seen.size() == 19);
}

TEST_CASE("a chunk's owner lives as long as its last copy") {
  auto token = std::make_shared<int>(1);
  chunk copy;
  {
    const std::array<std::uint8_t, 3> bytes{1, 2, 3};
    const auto first = chunk::copy_of(bytes, token);
    copy = first;
  }
  CHECK(token.use_count() == 2);
  CHECK(copy.bytes()[2] == 3);
  copy = {};
  CHECK(token.use_count() == 1);
}
