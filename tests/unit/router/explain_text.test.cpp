#include "actors/router/explain_text.hpp"

#include <doctest/doctest.h>

#include "messages/decode.hpp"
#include "messages/view.hpp"

namespace infernex::router {
namespace {

void add_score(fb::CandidateT& to, const std::string& scorer, double value, double weight) {
  auto& score = *to.scores.emplace_back(std::make_unique<fb::ScoreT>());
  score.scorer = scorer;
  score.value = value;
  score.weight = weight;
}

fb::RouteDecisionT decision() {
  fb::RouteDecisionT out;
  out.model = "m";
  auto& choice = *out.choices.emplace_back(std::make_unique<fb::RouteChoiceT>());
  choice.request_id = "r1";
  choice.strategy = "picker.yaml";
  choice.instance = "e0";
  choice.reason = "e0 holds 3 of 4 blocks";
  choice.prompt_tokens = 70;
  choice.block_size = 16;
  choice.index_used = true;
  choice.engines = 3;
  choice.considered = 2;
  auto& first = *choice.candidates.emplace_back(std::make_unique<fb::CandidateT>());
  first.instance = "e0";
  first.overlap_blocks = 3;
  first.total = 2.5;
  add_score(first, "overlap", 0.75, 2);
  add_score(first, "waiting", 1, 1);
  auto& second = *choice.candidates.emplace_back(std::make_unique<fb::CandidateT>());
  second.instance = "e10";
  second.overlap_blocks = 0;
  second.predicted_blocks = 1;
  second.total = 0.5;
  add_score(second, "overlap", 0.25, 2);
  add_score(second, "waiting", 0, 1);
  auto& third = *choice.candidates.emplace_back(std::make_unique<fb::CandidateT>());
  third.instance = "e2";
  third.filtered_by = "decode-filter";
  return out;
}

std::string json_of(const fb::RouteDecisionT& from) {
  const auto bytes = encode(from);
  auto json = decode_to_json(bytes_of(bytes));
  REQUIRE(json);
  return *json;
}

TEST_CASE("a line a candidate: its scores with their weights and the total, or what dropped it") {
  const auto text = explain_text(json_of(decision()));
  REQUIRE(text);
  CHECK(*text ==
        "model m, request r1, policy picker.yaml, 70 tokens in blocks of 16, KV index used\n"
        "3 engines of the model are known, 2 passed all filters\n"
        "\n"
        "  ENGINE           CACHED   overlap  waiting  TOTAL  FILTERS\n"
        "  e0                    3  0.75 x 2    1 x 1    2.5  passed\n"
        "  e10     0 (1 predicted)  0.25 x 2    0 x 1    0.5  passed\n"
        "  e2                    -         -        -      -  dropped: decode-filter\n"
        "\n"
        "choice: e0\n"
        "reason: e0 holds 3 of 4 blocks\n");
}

TEST_CASE("nobody to choose, and no candidate to show") {
  auto none = decision();
  auto& choice = *none.choices[0];
  choice.instance.clear();
  choice.candidates.clear();
  choice.engines = choice.considered = 0;
  choice.index_used = false;
  choice.reason = "no engine of this model has been announced";
  const auto text = explain_text(json_of(none));
  REQUIRE(text);
  CHECK(text->find("KV index not used\n0 engines of the model are known") != std::string::npos);
  CHECK(text->find("\nchoice: none\nreason: no engine of this model") != std::string::npos);
}

TEST_CASE("what is no decision is refused") {
  for (const auto* text : {"", "[]", "{}", R"({"message":"EngineLoad","body":{}})", R"({"message":"RouteDecision"})",
                           R"({"message":"RouteDecision","body":{"choices":[7]}})"}) {
    CAPTURE(text);
    const auto read = explain_text(text);
    REQUIRE_FALSE(read);
    CHECK(read.failure().code == errc::malformed_input);
  }
}

}  // namespace
}  // namespace infernex::router
