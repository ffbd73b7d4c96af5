#include <cmath>

#include <doctest/doctest.h>

#include "actors/simulator/replay_world.hpp"

using namespace infernex::simulator;

TEST_CASE("settings that cannot be are refused by name") {
  const auto refused = [](auto change) {
    replay_settings settings;
    settings.engines.resize(1);
    change(settings);
    const auto wrong = replay_world::check(settings, 16);
    return wrong ? wrong->detail : std::string();
  };
  CHECK(refused([](replay_settings&) {}).empty());
  CHECK(refused([](auto& s) { s.engines.clear(); }) == "engines: 1 to 3840");
  CHECK(refused([](auto& s) { s.engines[0].engine.block_size = 32; }) == "block_size: that of the trace's blocks, 16");
  CHECK(refused([](auto& s) { s.engines[0].speed = 0; }) == "speed: above 0");
  CHECK(refused([](auto& s) { s.engines[0].dies_ms = 0; }) == "an engine fails after it started");
  CHECK(refused([](auto& s) { s.routers = 0; }) == "gateways, routers: at least one each");
  CHECK(refused([](auto& s) { s.delays.kv_event_ms = NAN; }) == "times and sizes: finite, not negative");
  CHECK(refused([](auto& s) { s.delays.report_interval_ms = 0; }) == "report interval: above 0");
  CHECK(refused([](auto& s) { s.engines[0].engine.max_num_seqs = 0; }) == "max_num_seqs: at least 1");
}
