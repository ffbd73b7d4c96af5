#include "actors/router/place.hpp"

#include <doctest/doctest.h>

#include "actors/router/decision_batch.hpp"
#include "messages/view.hpp"

namespace infernex::router {
namespace {

using namespace std::chrono_literals;
constexpr clock_point now{1'000s};

template <class Object>
view<typename Object::TableType> message(const Object& object) {
  const auto bytes = encode(object);
  return *view<typename Object::TableType>::verify(chunk::copy_of(bytes_of(bytes)));
}

struct setup {
  fleet engines;
  reservation_book open{engines.board()};
  prediction_index predicted;
  prediction_book routed{predicted};
  placer places;

  explicit setup(std::string s = "kv-aware", prediction_settings prediction = {})
      : predicted(prediction), places(engines, open, predicted, routed, policy_of(s)) {
    for (const auto* instance : {"e0", "e1"}) {
      fb::EngineAnnounceT m;
      m.origin = std::make_unique<fb::OriginT>();
      m.origin->sequence = 1;
      m.origin->epoch = 1;
      m.model = "m";
      m.instance = instance;
      m.url = std::string("http://") + instance;
      m.state = fb::EngineState::Ready;
      m.adapters = {"lora"};
      engines.on_announce(*message(m), now);
    }
  }
  static policy policy_of(const std::string& s) {
    policy how;
    how.strategy = s;
    return how;
  }
  static fb::RouteQueryT query(const std::string& model, std::initializer_list<std::size_t> key_counts) {
    fb::RouteQueryT q;
    q.model = model;
    for (const auto count : key_counts) {
      auto& item = *q.items.emplace_back(std::make_unique<fb::RouteItemT>());
      item.request_id = "r" + std::to_string(q.items.size());
      item.key_mode = fb::KeyMode::Token;
      item.prompt_tokens = static_cast<std::uint32_t>(16 * count + 5);
      item.block_size = 16;
      for (std::size_t k = 0; k < count; ++k) item.keys.push_back(q.items.size() * 100 + k);
    }
    return q;
  }
};

fb::KvMatchReplyT reply(std::initializer_list<std::pair<const char*, std::uint32_t>> one_match_each) {
  fb::KvMatchReplyT r;
  r.model = "m";
  for (const auto& [instance, blocks] : one_match_each) {
    auto& match = *r.matches.emplace_back(std::make_unique<fb::KvMatchT>());
    auto& overlap = *match.overlaps.emplace_back(std::make_unique<fb::KvOverlapT>());
    overlap.instance = instance;
    overlap.blocks = blocks;
  }
  auto& known = *r.coverage.emplace_back(std::make_unique<fb::KvCoverageT>());
  known.instance = "e0";
  return r;
}

TEST_CASE("the indexer is asked only for items with keys, by the base model's name, and only under kv-aware") {
  setup s;
  const auto q = message(setup::query("lora", {2, 0, 3}));
  const auto asked = s.places.question(*q);
  REQUIRE(asked);
  CHECK(asked->model == "m");
  REQUIRE(asked->chains.size() == 2);
  CHECK(asked->chains[0]->keys == std::vector<std::uint64_t>{100, 101});
  CHECK(asked->chains[1]->keys == std::vector<std::uint64_t>{300, 301, 302});
  CHECK_FALSE(s.places.question(*message(setup::query("m", {0, 0}))));
  CHECK_FALSE(s.places.question(*message(setup::query("unknown", {2}))));
  setup by_turn("round-robin");
  CHECK_FALSE(by_turn.places.question(*q));
}

TEST_CASE("an indexer that knows no engine of the model is not one that knows of no cached block") {
  setup s;
  const auto q = message(setup::query("m", {2}));
  auto unknowing = reply({{"e1", 2}});
  unknowing.matches[0]->overlaps.clear();
  unknowing.coverage.clear();
  const auto found = message(unknowing);
  const auto out = s.places.place(*q, {&*found, {}}, now);
  REQUIRE(out.choices.size() == 1);
  CHECK_FALSE(out.choices[0]->index_used);
  CHECK(out.choices[0]->reason.find("the model is not indexed") != std::string::npos);
}

TEST_CASE("each item gets its own overlaps, in order; the choice is reserved and put into words") {
  setup s;
  const auto q = message(setup::query("m", {2, 0, 4}));
  const auto found = message(reply({{"e1", 2}, {"e0", 3}}));
  const auto out = s.places.place(*q, {&*found, {}}, now);
  CHECK(out.model == "m");
  REQUIRE(out.choices.size() == 3);
  const auto& first = *out.choices[0];
  CHECK(first.request_id == "r1");
  CHECK(first.instance == "e1");
  CHECK(first.url == "http://e1");
  CHECK(first.overlap_blocks == 2);
  CHECK(first.index_used);
  CHECK(first.strategy == "kv-aware");
  CHECK(first.block_size == 16);
  CHECK(*first.prompt_tokens == 37);
  REQUIRE(first.candidates.size() == 2);
  CHECK(first.candidates[0]->instance == "e1");
  CHECK(first.candidates[0]->scores.size() == 4);
  CHECK(first.candidates[1]->overlap_blocks == 0);
  CHECK_FALSE(out.choices[1]->index_used);
  CHECK(out.choices[2]->instance == "e0");
  CHECK(out.choices[2]->overlap_blocks == 3);
  CHECK(s.open.open() == 3);
  published<topology>::reader seen(s.engines.topologies());
  std::uint64_t reserved = 0;
  std::uint32_t requests = 0;
  for (const auto& e : seen.get()->find("m")->endpoints) {
    const auto load = s.engines.board().read(e.slot, now);
    requests += load.in_flight;
    reserved += load.prefill_tokens;
  }
  CHECK(requests == 3);
  CHECK(reserved == (37 - 32) + 5 + (69 - 48));
}

TEST_CASE("a reservation makes the next decision go elsewhere") {
  setup s("least-load");
  const auto q = message(setup::query("m", {0, 0, 0, 0}));
  const auto out = s.places.place(*q, {nullptr, "no question"}, now);
  unsigned first = 0;
  for (const auto& choice : out.choices) first += choice->instance == "e0";
  CHECK(first == 2);
}

TEST_CASE("without an index, what was routed to an engine draws the next of its kind there, and counts as cached") {
  setup s;
  const auto first = s.places.place(*message(setup::query("m", {4})), {nullptr, "no answer"}, now);
  const auto& to = first.choices[0]->instance;
  CHECK_FALSE(first.choices[0]->by_prediction);
  CHECK(first.choices[0]->predicted_blocks == 0);
  auto again = setup::query("lora", {4});
  again.items[0]->request_id = "again";
  for (int i = 0; i < 4; ++i) {
    const auto out = s.places.place(*message(again), {nullptr, "no answer"}, now + 119s);
    const auto& choice = *out.choices[0];
    CHECK(choice.instance == to);
    CHECK(choice.by_prediction);
    CHECK(choice.predicted_blocks == 4);
    CHECK(choice.overlap_blocks == 0);
    CHECK(choice.candidates[0]->predicted_blocks == 4);
    CHECK(choice.reason.find("kv-aware by prediction (no answer): " + to + " predicted 4 of 4 blocks") == 0);
  }
  s.places.on_tick(now + 119s);
  CHECK(s.predicted.count().entries == 4);
  s.places.on_tick(now + 300s);
  CHECK(s.predicted.count().entries == 0);
}

TEST_CASE("requests of one query see each other's predictions; switched off, and by other strategies, nobody does") {
  auto burst = setup::query("m", {4, 4, 4, 4});
  for (auto& item : burst.items) item->keys = burst.items[0]->keys;
  const auto on_one = [&](setup& s) {
    const auto out = s.places.place(*message(burst), {nullptr, "no answer"}, now);
    unsigned count = 0;
    for (const auto& choice : out.choices) count += choice->instance == out.choices[0]->instance;
    return count;
  };
  setup s;
  CHECK(on_one(s) == 4);
  prediction_settings off;
  off.enabled = false;
  setup without("kv-aware", off);
  CHECK(on_one(without) == 2);
  setup by_load("least-load");
  CHECK(on_one(by_load) == 2);
  CHECK(by_load.predicted.count().entries == 0);
}

TEST_CASE("keys of text are not asked of the indexer, and are predicted apart from keys of tokens") {
  setup s;
  auto mixed = setup::query("m", {2, 3});
  mixed.items[0]->key_mode = fb::KeyMode::Text;
  const auto q = message(mixed);
  const auto asked = s.places.question(*q);
  REQUIRE(asked);
  REQUIRE(asked->chains.size() == 1);
  CHECK(asked->chains[0]->keys.size() == 3);
  const auto found = message(reply({{"e1", 3}}));
  const auto out = s.places.place(*q, {&*found, {}}, now);
  CHECK_FALSE(out.choices[0]->index_used);
  CHECK(out.choices[0]->key_mode == fb::KeyMode::Text);
  CHECK(out.choices[0]->reason.find("keys of text are not indexed") != std::string::npos);
  CHECK(out.choices[1]->index_used);
  CHECK(out.choices[1]->overlap_blocks == 3);
  mixed.items.pop_back();
  CHECK_FALSE(s.places.question(*message(mixed)));
  const auto again = s.places.place(*message(mixed), {nullptr, "-"}, now);
  CHECK(again.choices[0]->instance == out.choices[0]->instance);
  CHECK(again.choices[0]->by_prediction);
  mixed.items[0]->key_mode = fb::KeyMode::Token;
  CHECK(s.places.place(*message(mixed), {nullptr, "-"}, now).choices[0]->predicted_blocks == 0);
}

TEST_CASE("a request that ends elsewhere takes its prediction along, and its reservation is over") {
  setup s;
  const auto q = setup::query("m", {4});
  const auto chosen = s.places.place(*message(q), {nullptr, "-"}, now).choices[0]->instance;
  const std::string other = chosen == "e0" ? "e1" : "e0";
  fb::RequestLifeT life;
  life.model = "m";
  auto& end = *life.finished.emplace_back(std::make_unique<fb::FinishedT>());
  end.request_id = "r1";
  end.instance = other;
  s.places.on_life(*message(life), now);
  CHECK(s.open.open() == 0);
  CHECK(s.routed.open() == 0);
  const auto next = s.places.place(*message(q), {nullptr, "-"}, now);
  CHECK(next.choices[0]->instance == other);
  CHECK(next.choices[0]->predicted_blocks == 4);
}

TEST_CASE("an engine that refused a request is not predicted to have computed it") {
  setup s;
  const auto q = setup::query("m", {4});
  const auto chosen = s.places.place(*message(q), {nullptr, "-"}, now).choices[0]->instance;
  CHECK(s.predicted.count().entries == 4);
  fb::RequestLifeT life;
  life.model = "m";
  auto& end = *life.finished.emplace_back(std::make_unique<fb::FinishedT>());
  end.request_id = "r1";
  end.instance = chosen;
  end.status = 429;
  s.places.on_life(*message(life), now);
  CHECK(s.predicted.count().entries == 0);
  CHECK(s.routed.open() == 0);
}

TEST_CASE("tiers and ranks travel with the candidates") {
  setup s;
  fb::EngineAnnounceT m;
  m.origin = std::make_unique<fb::OriginT>();
  m.origin->epoch = 1;
  m.origin->sequence = 2;
  m.model = "m";
  m.instance = "e1";
  m.state = fb::EngineState::Ready;
  m.data_parallel_rank = 3;
  s.engines.on_announce(*message(m), now);
  auto tiers = reply({{"e1", 4}});
  tiers.matches[0]->overlaps[0]->device_blocks = 1;
  tiers.matches[0]->overlaps[0]->host_blocks = 3;
  const auto found = message(tiers);
  const auto out = s.places.place(*message(setup::query("m", {4})), {&*found, {}}, now);
  const auto& choice = *out.choices[0];
  CHECK(choice.instance == "e1");
  CHECK(choice.data_parallel_rank == 3U);
  CHECK(choice.candidates[0]->data_parallel_rank == 3U);
  CHECK(choice.candidates[0]->device_blocks == 1U);
  CHECK(choice.candidates[0]->host_blocks == 3U);
  CHECK_FALSE(choice.candidates[1]->data_parallel_rank.has_value());
  CHECK_FALSE(choice.candidates[1]->device_blocks.has_value());
}

TEST_CASE("without an answer, or with one that does not fit, it is placed by load and says so") {
  setup s;
  const auto q = message(setup::query("m", {2, 2}));
  auto out = s.places.place(*q, {nullptr, "the indexer did not answer in 50 ms"}, now);
  REQUIRE(out.choices.size() == 2);
  CHECK_FALSE(out.choices[0]->instance.empty());
  CHECK_FALSE(out.choices[0]->index_used);
  CHECK(out.choices[0]->reason.find("(the indexer did not answer in 50 ms)") != std::string::npos);
  const auto short_reply = message(reply({{"e1", 2}}));
  out = s.places.place(*q, {&*short_reply, {}}, now);
  CHECK_FALSE(out.choices[0]->index_used);
  CHECK(out.choices[0]->reason.find("does not fit") != std::string::npos);
}

TEST_CASE("no engine: an empty choice with a reason, nothing reserved; an empty query, an empty answer") {
  setup s;
  const auto out = s.places.place(*message(setup::query("unknown", {1})), {nullptr, "-"}, now);
  REQUIRE(out.choices.size() == 1);
  CHECK(out.model == "unknown");
  CHECK(out.choices[0]->instance.empty());
  CHECK(out.choices[0]->candidates.empty());
  CHECK(out.choices[0]->reason == "no engine of this model has been announced");
  CHECK(s.open.open() == 0);
  CHECK(s.places.place(*message(fb::RouteQueryT{}), {nullptr, "-"}, now).choices.empty());
}

TEST_CASE("a batch of decisions is one message a model, none too large") {
  decision_batch batch;
  const auto decided = [](const std::string& model, std::size_t count) {
    fb::RouteDecisionT d;
    d.model = model;
    for (std::size_t i = 0; i < count; ++i) d.choices.push_back(std::make_unique<fb::RouteChoiceT>());
    return d;
  };
  CHECK(batch.take().empty());
  batch.add(decided("a", 150));
  batch.add(decided("b", 1));
  batch.add(decided("a", 100));
  CHECK(batch.size() == 251);
  const auto out = batch.take();
  REQUIRE(out.size() == 3);
  CHECK(out[0].model == "a");
  CHECK(out[0].choices.size() == decision_batch::full);
  CHECK(out[1].model == "a");
  CHECK(out[1].choices.size() == 50);
  CHECK(out[2].model == "b");
  CHECK(batch.size() == 0);
}

}  // namespace
}  // namespace infernex::router
