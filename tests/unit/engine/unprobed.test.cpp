#include "actors/engine/unprobed.hpp"

#include <doctest/doctest.h>

#include "actors/engine/epoch_source.hpp"

namespace infernex::engine {
namespace {

fb::EngineState said(const engine_descriptor& engine, fb::EngineState state) {
  fb::EngineAnnounceT message;
  message.state = state;
  say_unroutable(engine, message);
  return message.state;
}

TEST_CASE("no request is sent to an engine without a URL, or to one that knows its model by another name") {
  engine_descriptor engine;
  CHECK(said(engine, fb::EngineState::Ready) == fb::EngineState::Draining);
  engine.url = "http://h:1";
  CHECK(said(engine, fb::EngineState::Ready) == fb::EngineState::Ready);
  engine.routable = false;
  CHECK(said(engine, fb::EngineState::Ready) == fb::EngineState::Draining);
  // What probes have found stays true.
  CHECK(said(engine, fb::EngineState::Down) == fb::EngineState::Down);
  CHECK(said(engine, fb::EngineState::Starting) == fb::EngineState::Starting);
}

TEST_CASE("epochs rise when the clock is set back") {
  epoch_source epochs(100);
  CHECK(epochs.take(90) == 101);
  CHECK(epochs.take(500) == 500);
  CHECK(epochs.take(400) == 501);
  CHECK(epochs.take(501) == 502);
}

}  // namespace
}  // namespace infernex::engine
