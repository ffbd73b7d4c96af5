#include "actors/simulator/replay_record.hpp"

#include <sstream>

#include <doctest/doctest.h>

#include "actors/simulator/replay_trace_file.hpp"
#include "messages/view.hpp"

using namespace infernex;
using namespace infernex::simulator;
using namespace std::chrono_literals;

namespace {

/// Messages as they are on the bus, at milliseconds of a clock of its own.
struct recording {
  explicit recording(std::string model = {}, replay_recorder::limits bounds = {})
      : recorder(std::move(model), bounds) {}

  static replay_recorder::clock_point at(int ms) {
    return replay_recorder::clock_point{} + std::chrono::milliseconds(ms);
  }

  void ask(int ms, const std::string& id, std::vector<std::uint64_t> keys, const std::string& model = "m",
           std::uint32_t block_size = 16) {
    fb::RouteQueryT query;
    query.model = model;
    query.items.push_back(std::make_unique<fb::RouteItemT>());
    auto& item = *query.items.back();
    item.request_id = id;
    item.block_size = block_size;
    item.prompt_tokens = 40;
    item.keys = std::move(keys);
    const auto bytes = encode(query);
    recorder.query(*flatbuffers::GetRoot<fb::RouteQuery>(bytes.data()), at(ms));
  }

  void end(int ms, const std::string& id, fb::FinishedT record = {}, const std::string& model = "m") {
    fb::RequestLifeT life;
    life.model = model;
    record.request_id = id;
    life.finished.push_back(std::make_unique<fb::FinishedT>(record));
    const auto bytes = encode(life);
    text += recorder.life(*flatbuffers::GetRoot<fb::RequestLife>(bytes.data()), at(ms));
  }

  result<loaded_trace> read() const {
    std::istringstream in(text);
    return read_trace(in, "recorded");
  }

  replay_recorder recorder;
  std::string text;
};

fb::FinishedT answered(std::uint32_t prompt_tokens, std::uint32_t output_tokens, double ttft_ms) {
  fb::FinishedT record;
  record.prompt_tokens = prompt_tokens;
  record.completion_tokens = output_tokens;
  record.ttft_ms = ttft_ms;
  return record;
}

}  // namespace

TEST_CASE("queries and ends join to a trace that can be read back") {
  recording on;
  on.ask(1000, "a", {5, 6});
  on.ask(1250, "b", {5});
  on.ask(1300, "a", {5, 6});  // an engine failed it, and it was asked for again
  on.end(1500, "b", answered(20, 3, 70));
  on.end(1700, "a", answered(40, 9, 110));
  CHECK(on.recorder.counts().recorded == 2);
  CHECK(on.recorder.counts().dropped() == 0);
  CHECK(on.recorder.pending() == 0);
  CHECK(on.recorder.model() == "m");
  const auto got = on.read();
  REQUIRE(got.ok());
  CHECK(got->bad_lines == 0);
  CHECK(got->model == "m");
  const auto& all = got->requests;
  CHECK(all.block_tokens() == 16);
  REQUIRE(all.size() == 2);
  CHECK(all[0].prompt_tokens == 40);
  CHECK(all[0].output_tokens == 9);
  CHECK(std::vector(all[0].blocks.begin(), all[0].blocks.end()) == std::vector<std::uint64_t>{5, 6});
  CHECK(all[1].arrival_ms == 250);
  CHECK(all[1].output_tokens == 3);
  CHECK(got->observed_ttft.count() == 2);
  CHECK(*got->observed_ttft.most() == 110);
}

TEST_CASE("requests of one message keep their order, whatever the order of their ends") {
  fb::RouteQueryT query;
  query.model = "m";
  for (const auto* id : {"first", "second", "third"}) {
    query.items.push_back(std::make_unique<fb::RouteItemT>());
    query.items.back()->request_id = id;
    query.items.back()->block_size = 16;
  }
  const auto bytes = encode(query);
  recording on;
  on.recorder.query(*flatbuffers::GetRoot<fb::RouteQuery>(bytes.data()), recording::at(0));
  on.end(30, "third", answered(3, 1, 1));
  on.end(30, "second", answered(2, 1, 1));
  on.end(30, "first", answered(1, 1, 1));
  const auto got = on.read();
  REQUIRE(got.ok());
  REQUIRE(got->requests.size() == 3);
  for (std::size_t i = 0; i < 3; ++i) CHECK(got->requests[i].prompt_tokens == i + 1);
  CHECK(got->requests.span_ms() == doctest::Approx(0.002));
}

TEST_CASE("the prompt's length is the query's where the engine said none, and there are no more keys than blocks") {
  recording on;
  on.ask(0, "a", {1, 2, 3, 4, 5});
  fb::FinishedT record;
  record.completion_tokens = 1;
  on.end(9, "a", record);
  const auto got = on.read();
  REQUIRE(got.ok());
  CHECK(got->requests[0].prompt_tokens == 40);
  CHECK(got->requests[0].blocks.size() == 3);
  CHECK(got->observed_ttft.count() == 0);
}

TEST_CASE("what cannot be recorded is counted by its reason") {
  recording on("m", {.max_pending = 3, .max_pending_keys = 6, .expiry = 1000ms});
  on.end(0, "before", answered(1, 1, 1));
  on.ask(0, "x", {1}, "other");
  on.end(1, "x", answered(1, 1, 1), "other");
  on.ask(0, "late", {1});
  on.ask(1, "gone", {1});
  on.ask(2, "short", {1});
  on.ask(3, "fourth", {1});
  auto failed = answered(9, 9, 9);
  failed.outcome = fb::Outcome::ClientGone;
  on.end(4, "gone", failed);
  on.end(5, "short");
  on.ask(6, "keys", {1, 2, 3, 4, 5, 6});  // one is held already
  on.ask(7, "size", {1}, "m", 32);
  on.ask(999, "fits", {1, 2, 3, 4, 5});
  CHECK(on.recorder.pending() == 2);
  on.end(1000, "late", answered(1, 1, 1));
  const auto& counts = on.recorder.counts();
  CHECK(counts.recorded == 0);
  CHECK(counts.no_query == 2);  // one is from before, one came too late
  CHECK(counts.other_model == 1);
  CHECK(counts.over_bound == 2);
  CHECK(counts.not_completed == 1);
  CHECK(counts.no_lengths == 1);
  CHECK(counts.other_block_size == 1);
  CHECK(counts.expired == 1);
  CHECK(counts.dropped() == 7);
  CHECK(on.recorder.pending() == 1);
  CHECK(on.text.empty());
  on.end(1001, "fits", answered(90, 1, 1));
  CHECK(counts.recorded == 1);
  CHECK(on.recorder.pending() == 0);
}

TEST_CASE("messages without content do no harm") {
  recording on;
  const auto query = encode(fb::RouteQueryT{});
  on.recorder.query(*flatbuffers::GetRoot<fb::RouteQuery>(query.data()), recording::at(0));
  on.ask(0, "", {1});
  const auto life = encode(fb::RequestLifeT{});
  CHECK(on.recorder.life(*flatbuffers::GetRoot<fb::RequestLife>(life.data()), recording::at(0)).empty());
  CHECK(on.recorder.pending() == 0);
  CHECK(on.recorder.counts().dropped() == 0);
}
