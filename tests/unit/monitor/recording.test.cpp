#include "monitor/recording.hpp"

#include <cstdio>
#include <cstdlib>
#include <filesystem>

#include <doctest/doctest.h>

#include "monitor/fleet_source.hpp"
#include "monitor/replay_source.hpp"

using namespace infernex;
using namespace infernex::monitor;

namespace {

struct folder {
  std::string path;
  folder() {
    char pattern[] = "/tmp/infernex-recording-XXXXXX";
    path = ::mkdtemp(pattern);
  }
  ~folder() { std::filesystem::remove_all(path); }
  std::string file() const { return path + "/a.rec"; }
};

poll_time at(std::uint64_t ms) { return {ms, 5'000'000'000 + ms * 1'000'000}; }

void record_ten_seconds(const std::string& file) {
  auto fleet = sim_fleet::make({}, {{fault_kind::ecc_double, 0, 1, 3000, 60'000}});
  REQUIRE(fleet);
  fleet_source source(*std::move(fleet));
  auto to = recorder::create(file, 1 << 20);
  REQUIRE(to);
  for (std::uint64_t ms = 0; ms < 10'000; ms += 1000)
    source.poll(at(ms), [&](node_report&& report) {
      const auto time = at(ms).wall_ns;
      if (report.inventory) CHECK(to->write(time, bytes_of(encode(*report.inventory))).code == errc::none);
      for (const auto& event : report.events) CHECK(to->write(time, bytes_of(encode(event))).code == errc::none);
      if (report.sample) CHECK(to->write(time, bytes_of(pack(*report.sample))).code == errc::none);
    });
}

}  // namespace

TEST_CASE("what was recorded is played again, at its distances, faster if asked") {
  const folder in;
  record_ten_seconds(in.file());
  auto reader = recording_reader::open(in.file());
  REQUIRE(reader);
  replay_source source(*std::move(reader), 2);
  std::size_t samples = 0;
  std::size_t events = 0;
  std::size_t inventories = 0;
  const auto count = [&](node_report&& report) {
    CHECK(report.node == "sim-0");
    if (report.sample) {
      ++samples;
      CHECK(report.sample->devices.size() == 8);
    }
    events += report.events.size();
    inventories += report.inventory ? 1 : 0;
  };
  source.poll(at(77'000), count);
  CHECK(samples == 1);
  CHECK(inventories == 1);
  source.poll(at(78'000), count);
  CHECK(samples == 3);
  CHECK(events == 0);
  CHECK_FALSE(source.ended());
  source.poll(at(90'000), count);
  CHECK(samples == 10);
  CHECK(events == 1);
  CHECK(source.ended());
  CHECK(source.refused() == 0);
}

TEST_CASE("a recording that was cut off ends at its last whole message, and other files are none") {
  const folder in;
  record_ten_seconds(in.file());
  std::filesystem::resize_file(in.file(), std::filesystem::file_size(in.file()) - 3);
  auto reader = recording_reader::open(in.file());
  REQUIRE(reader);
  recorded_message message;
  std::size_t count = 0;
  while (reader->next(message)) ++count;
  CHECK(count == 11);  // of twelve: an inventory, an event and ten samples
  CHECK(reader->cut_off());

  std::ofstream(in.path + "/b") << "something else";
  CHECK(recording_reader::open(in.path + "/b").failure().code == errc::malformed_input);
  CHECK(recording_reader::open(in.path + "/c").failure().code == errc::not_found);
}

TEST_CASE("a recording stops at its limit and keeps what it has") {
  const folder in;
  auto to = recorder::create(in.file(), 8 + 2 * (12 + 100));
  REQUIRE(to);
  const std::vector<std::uint8_t> message(100);
  CHECK(to->write(1, message).code == errc::none);
  CHECK(to->write(2, message).code == errc::none);
  CHECK(to->write(3, message).code == errc::too_large);
  CHECK(to->full());
  auto reader = recording_reader::open(in.file());
  REQUIRE(reader);
  recorded_message read;
  CHECK(reader->next(read));
  CHECK(read.time_ns == 1);
  CHECK(reader->next(read));
  CHECK_FALSE(reader->next(read));
  CHECK_FALSE(reader->cut_off());
}
