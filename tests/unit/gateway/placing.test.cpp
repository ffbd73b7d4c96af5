#include "gateway/placing.hpp"

#include <doctest/doctest.h>

#include "actors/router/policy.hpp"

using namespace infernex;
using namespace infernex::gateway;

namespace {

route_request request() {
  route_request r;
  r.request_id = "r1";
  r.model = "m";
  r.adapter = "lora";
  r.key_mode = fb::KeyMode::Token;
  r.prompt_tokens = 33;
  r.prompt_bytes = 100;
  r.block_size = 16;
  r.keys = {11, 12};
  r.exclude = {"e9"};
  return r;
}

}  // namespace

TEST_CASE("a query carries all there is to know of its items, in order") {
  auto one = request();
  route_request two;
  two.request_id = "r2";
  const auto bytes = encode_route_query("gateway/x", 5, 6, "m", {&one, &two});
  const auto query = view<fb::RouteQuery>::verify(chunk::copy_of(bytes_of(bytes)));
  REQUIRE(query.ok());
  CHECK(text((*query)->model()) == "m");
  CHECK(text((*query)->origin()->id()) == "gateway/x");
  CHECK((*query)->origin()->epoch() == 5);
  CHECK((*query)->origin()->sequence() == 6);
  REQUIRE((*query)->items()->size() == 2);
  const auto* first = (*query)->items()->Get(0);
  CHECK(text(first->request_id()) == "r1");
  CHECK(text(first->adapter()) == "lora");
  CHECK(first->key_mode() == fb::KeyMode::Token);
  CHECK(first->prompt_tokens() == 33U);
  CHECK(first->prompt_bytes() == 100);
  CHECK(first->block_size() == 16);
  CHECK(elements(first->keys()).size() == 2);
  CHECK(elements(first->keys())[1] == 12);
  CHECK_FALSE(first->max_tokens().has_value());
  CHECK(text(first->exclude()->Get(0)) == "e9");
  CHECK_FALSE((*query)->items()->Get(1)->prompt_tokens().has_value());
}

TEST_CASE("a prompt of any length fits into a message") {
  auto huge = request();
  huge.keys.assign(10 * max_query_keys, 1);
  const auto bytes = encode_route_query("g", 1, 1, "m", {&huge});
  CHECK(bytes.size() < max_message_bytes);
  const auto query = view<fb::RouteQuery>::verify(chunk::copy_of(bytes_of(bytes)));
  REQUIRE(query.ok());
  CHECK(elements((*query)->items()->Get(0)->keys()).size() == max_query_keys);
  CHECK(query_bytes(huge) >= max_query_keys * 8);
}

TEST_CASE("a router's choice, its runners-up, or its reason for none") {
  fb::RouteChoiceT decided;
  decided.reason = "because";
  const auto read = [](const fb::RouteChoiceT& from) {
    flatbuffers::FlatBufferBuilder b;
    b.Finish(fb::RouteChoice::Pack(b, &from));
    return to_choice(*flatbuffers::GetRoot<fb::RouteChoice>(b.GetBufferPointer()));
  };
  CHECK(read(decided).ranked.empty());
  CHECK(read(decided).reason == "because");
  decided.instance = "e1";
  decided.url = "http://e1";
  decided.overlap_blocks = 4;
  decided.predicted_blocks = 6;
  decided.by_prediction = true;
  decided.data_parallel_rank = 2;
  for (const auto* name : {"e1", "e0"}) {
    auto c = std::make_unique<fb::CandidateT>();
    c->instance = name;
    c->url = std::string("http://") + name;
    c->overlap_blocks = 1;
    c->predicted_blocks = 1;
    decided.candidates.push_back(std::move(c));
  }
  const auto choice = read(decided);
  REQUIRE(choice.ranked.size() == 2);
  CHECK(choice.ranked[0].instance == "e1");
  CHECK(choice.ranked[0].overlap_blocks == 4);
  CHECK(choice.ranked[1].instance == "e0");
  CHECK(choice.ranked[1].url == "http://e0");
  CHECK(choice.ranked[0].by_prediction);
  CHECK(choice.ranked[0].expected_blocks() == 6);
  CHECK(choice.ranked[0].data_parallel_rank == 2U);
  CHECK_FALSE(choice.ranked[1].by_prediction);
  CHECK(choice.ranked[1].expected_blocks() == 1);
  CHECK_FALSE(choice.ranked[1].data_parallel_rank);
}

TEST_CASE("by load only: says why, keeps exclusions, and does not claim an overlap") {
  router::load_board board(8);
  router::model_endpoints model;
  model.model = "m";
  for (const auto* name : {"e0", "e1", "e9"}) {
    router::endpoint e;
    e.instance = name;
    e.url = std::string("http://") + name;
    e.state = fb::EngineState::Ready;
    e.slot = *board.acquire();
    model.endpoints.push_back(e);
  }
  auto r = request();
  r.adapter.clear();
  const router::clock_point now{std::chrono::seconds(1000)};
  board.reserve(model.endpoints[0].slot, {5, 1000});
  const auto by = router::make_scheduler(router::spec_without_cache({}));
  const auto choice = place_by_load(r, &model, board, *by, now, "router did not answer in 300 ms");
  REQUIRE(choice.ranked.size() == 2);
  CHECK(choice.ranked[0].instance == "e1");
  CHECK(choice.reason.starts_with("router did not answer in 300 ms; by load only: "));
  CHECK(choice.by_fallback);
  CHECK_FALSE(choice.index_used);
  CHECK(someone_ready(r, &model));
  r.exclude = {"e0", "e1", "e9"};
  CHECK_FALSE(someone_ready(r, &model));
  CHECK(place_by_load(r, &model, board, *by, now, "x").ranked.empty());
  CHECK_FALSE(someone_ready(r, nullptr));
}

TEST_CASE("a reservation counts the tokens that are expected to be prefilled") {
  CHECK(share_of(request(), 0).requests == 1);
  CHECK(share_of(request(), 0).prefill_tokens == 33);
  CHECK(share_of(request(), 2).prefill_tokens == 1);
}

TEST_CASE("cached tokens: blocks of tokens as they are, pieces of text as their share of the prompt") {
  auto r = request();
  CHECK(cached_tokens(r, 2, 33) == 32);
  r.key_mode = fb::KeyMode::Text;
  r.block_size = 128;
  r.prompt_bytes = 2'048;
  CHECK(cached_tokens(r, 2, 1'000) == 500);
  CHECK(cached_tokens(r, 2, std::nullopt) == 256);
  CHECK(cached_tokens(r, 9, 1'000) == 1'000);
}

TEST_CASE("parity expects what the choice rests on, and nothing of an engine that the index cannot know") {
  candidate c;
  c.overlap_blocks = 3;
  c.predicted_blocks = 5;
  router::endpoint at;
  CHECK_FALSE(expected_blocks(c, true, &at));  // no KV events: its zero, or its rest, says nothing
  CHECK_FALSE(expected_blocks(c, true, nullptr));
  at.kv_health = fb::KvHealth::Replaying;
  CHECK_FALSE(expected_blocks(c, true, &at));
  at.kv_health = fb::KvHealth::Live;
  CHECK(expected_blocks(c, true, &at) == 3U);
  CHECK_FALSE(expected_blocks(c, false, &at));
  c.by_prediction = true;
  CHECK(expected_blocks(c, true, &at) == 5U);
  CHECK(expected_blocks(c, false, nullptr) == 5U);
  c.overlap_blocks = 8;  // more, but on a tier where it is worth less
  CHECK(expected_blocks(c, true, &at) == 5U);
}

TEST_CASE("engines that only decode are reached by their group, which finds who prefills unless that was decided") {
  router::model_endpoints model;
  for (const auto* name : {"a0", "d0", "d1", "d2"}) {
    router::endpoint e;
    e.instance = name;
    if (*name == 'd') e.role = fb::EngineRole::Decode;
    if (*name == 'd' && name[1] != '2') e.group = "g";
    model.endpoints.push_back(e);
  }
  const auto named = [&model](const std::vector<const char*>& instances, bool pair) {
    std::vector<candidate> ranked;
    for (const auto* name : instances) ranked.emplace_back().instance = name;
    if (pair) {
      ranked.front().prefill_instance = "p0";
      ranked.front().pd_group = "g";
    }
    name_groups(ranked, model);
    return ranked;
  };
  SUBCASE("behind a pair") {
    const auto ranked = named({"d0", "d1", "a0", "d2", "gone"}, true);
    CHECK(ranked[0].pair());
    CHECK_FALSE(ranked[0].group_prefills);
    CHECK(ranked[1].pd_group == "g");
    CHECK(ranked[1].group_prefills);
    for (const auto at : {2U, 3U, 4U}) {
      CHECK_FALSE(ranked[at].by_group());
      CHECK(ranked[at].prefills_itself());
    }
  }
  SUBCASE("behind an engine that does all") { CHECK(named({"a0", "d1"}, false)[1].group_prefills); }
  SUBCASE("a decode engine by itself was decided") {
    for (const auto& c : named({"d0", "d1"}, false)) {
      CHECK(c.pd_group == "g");
      CHECK(c.prefills_itself());
    }
  }
}
