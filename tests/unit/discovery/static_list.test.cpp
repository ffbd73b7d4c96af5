#include "actors/discovery/static_list.hpp"

#include <doctest/doctest.h>

namespace {

using infernex::errc;
using infernex::discovery::checked;
using infernex::discovery::engine_descriptor;
using infernex::discovery::find_mistakes;
using infernex::discovery::render;

engine_descriptor good(std::string instance) {
  engine_descriptor engine;
  engine.instance = std::move(instance);
  engine.url = "http://127.0.0.1:8100";
  engine.kv_events = "tcp://127.0.0.1:5557";
  engine.kv_replay = "tcp://127.0.0.1:5558";
  return engine;
}

TEST_CASE("a list without mistakes comes back as it was") {
  auto second = good("e1");
  second.url = "http://[::1]:8101/base";
  second.kv_events = "ipc:///run/kv.sock";
  second.kv_replay.clear();
  second.block_size = 128;
  const std::vector list{good("e0"), second};
  const auto result = checked(list);
  REQUIRE(result.ok());
  CHECK(*result == list);
}

TEST_CASE("every mistake is found, each with its entry and key") {
  auto unnamed = good("");
  auto twice = good("e0");
  auto wrong = good("e2");
  wrong.url = "localhost:8000";
  wrong.kv_events = "tcp://*:5557";
  wrong.kv_replay = "tcp://host:0";
  wrong.block_size = 0;
  const std::vector list{good("e0"), unnamed, twice, wrong};
  const auto mistakes = find_mistakes(list);
  REQUIRE(mistakes.size() == 6);
  CHECK(render(mistakes[0]) == "engines[1].instance: a name is required");
  CHECK(render(mistakes[1]) == "engines[2].instance: \"e0\" is already the name of engines[0]");
  CHECK(render(mistakes[2]) == "engines[3].url: an http:// URL with host and port, not \"localhost:8000\"");
  CHECK(mistakes[3].key == "kv_events");
  CHECK(mistakes[4].key == "kv_replay");
  CHECK(mistakes[5].key == "block_size");
  const auto result = checked(list);
  REQUIRE_FALSE(result.ok());
  CHECK(result.failure().code == errc::invalid_config);
}

TEST_CASE("URLs an agent could not use are refused") {
  for (const auto* url : {"", "http://", "http://host", "http://:80", "http://host:0", "http://host:70000",
                          "http://host:80x", "https://host:443", "http://a b:80", "http://user@host:80"}) {
    CAPTURE(url);
    auto engine = good("e");
    engine.url = url;
    const auto mistakes = find_mistakes(std::vector{engine});
    REQUIRE(mistakes.size() == 1);
    CHECK(mistakes[0].key == "url");
  }
}

TEST_CASE("a replay endpoint alone is a mistake, names are bounded") {
  auto alone = good("e");
  alone.kv_events.clear();
  CHECK(find_mistakes(std::vector{alone}).size() == 1);
  CHECK(find_mistakes(std::vector{good(std::string(201, 'x'))}).size() == 1);
  CHECK(find_mistakes(std::vector{good("line\nbreak")}).size() == 1);
}

}  // namespace
