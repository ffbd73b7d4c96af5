#include "actors/indexer/index_page.hpp"

#include <boost/json.hpp>
#include <doctest/doctest.h>

#include "messages/view.hpp"

namespace infernex::indexer {
namespace {

const time_point start{};

source_status exact_source() {
  source_status s;
  s.model = "m";
  s.instance = "e0";
  s.exact = true;
  s.state = sync_state::exact;
  s.last_heard = start;
  return s;
}

engine_directory engines_with(fb::KvHealth health, fb::EngineState state = fb::EngineState::Ready) {
  engine_directory engines({});
  fb::EngineAnnounceT m;
  m.origin = std::make_unique<fb::OriginT>();
  m.origin->epoch = m.origin->sequence = 1;
  m.model = "m";
  m.instance = "e0";
  m.state = state;
  m.kv_health = health;
  const auto bytes = encode(m);
  engines.on_announce(*flatbuffers::GetRoot<fb::EngineAnnounce>(bytes.data()), start);
  return engines;
}

boost::json::value row_of(fb::KvHealth health) {
  index_page page;
  page.models.push_back({"m"});
  page.sources = {exact_source()};
  auto engines = engines_with(health);
  page.engines = engines.list();
  return boost::json::parse(to_json(page, start)).at("models").at(0).at("instances").at(0);
}

TEST_CASE("a source is exact only if its agent knows all that the engine holds") {
  CHECK(row_of(fb::KvHealth::Live).at("exact") == true);
  CHECK(row_of(fb::KvHealth::Live).at("state") == "exact");
  CHECK(row_of(fb::KvHealth::Live).at("kv_health") == "Live");
  // An agent that has replayed nothing yet announces no keys, which is what an empty index has.
  CHECK(row_of(fb::KvHealth::Replaying).at("exact") == false);
  CHECK(row_of(fb::KvHealth::Replaying).at("state") == "syncing");
  CHECK(row_of(fb::KvHealth::Partial).at("exact") == false);
  CHECK(row_of(fb::KvHealth::Partial).at("state") == "partial");
  CHECK(row_of(fb::KvHealth::Absent).at("exact") == false);
  CHECK(row_of(fb::KvHealth::Absent).at("state") == "absent");
  CHECK_FALSE(is_exact(exact_source(), nullptr));
}

TEST_CASE("a replica waits for agents that replay, not for what never comes") {
  const std::vector<source_status> sources{exact_source()};
  CHECK(waiting_sources(sources, engines_with(fb::KvHealth::Live)) == 0);
  CHECK(waiting_sources(sources, engines_with(fb::KvHealth::Replaying)) == 1);
  CHECK(waiting_sources(sources, engines_with(fb::KvHealth::Partial)) == 0);
  CHECK(waiting_sources(sources, engines_with(fb::KvHealth::Absent)) == 0);
  CHECK(waiting_sources(sources, engines_with(fb::KvHealth::Replaying, fb::EngineState::Down)) == 0);
  auto behind = sources;
  behind[0].exact = false;
  behind[0].state = sync_state::syncing;
  CHECK(waiting_sources(behind, engines_with(fb::KvHealth::Live)) == 1);
  behind[0].state = sync_state::capped;
  CHECK(waiting_sources(behind, engines_with(fb::KvHealth::Live)) == 0);
}

}  // namespace
}  // namespace infernex::indexer
