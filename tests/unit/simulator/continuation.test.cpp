#include <boost/json/parse.hpp>
#include <boost/json/serialize.hpp>
#include <doctest/doctest.h>

#include "actors/simulator/choice.hpp"
#include "actors/simulator/openai_request.hpp"

using namespace infernex;
using namespace infernex::simulator;

namespace json = boost::json;

namespace {

settings brief_engine() {
  settings values;
  values.eos_probability = 1.0 / 16;
  return values;
}

struct told {
  /// Text of each token.
  std::vector<std::string> pieces;
  bool stopped = false;
  std::string all(std::size_t from = 0) const {
    std::string text;
    for (auto i = from; i < pieces.size(); ++i) text += pieces[i];
    return text;
  }
};

/// What an engine answers to a parsed body, token by token.
told answer(const parsed<completion_request>& outcome, const settings& values) {
  REQUIRE(std::holds_alternative<completion_request>(outcome));
  const auto& request = std::get<completion_request>(outcome);
  sequence_request one{.id = 1,
                       .prompt = request.prompts[0],
                       .max_tokens = request.max_tokens[0],
                       .min_tokens = request.min_tokens,
                       .ignore_eos = request.ignore_eos,
                       .salt = {},
                       .source = generator::random(request.seed.value_or(values.seed), values.model, request.prompts[0],
                                                   values.eos_probability)};
  step_model model(values, 1);
  REQUIRE(model.add(std::move(one)) == errc::none);
  told got;
  while (model.begin_step()) {
    for (const auto& output : model.end_step().tokens) {
      auto& piece = got.pieces.emplace_back();
      append_text(output.token, piece);
      got.stopped = output.finish == finish_reason::stop;
    }
  }
  return got;
}

json::object chat_of(std::string_view user, std::size_t max_tokens) {
  return {{"messages", json::array{{{"role", "system"}, {"content", "You are brief."}},
                                   {{"role", "user"}, {"content", json::string(user)}}}},
          {"max_tokens", max_tokens}};
}

}  // namespace

TEST_CASE("a chat cut at any token and continued yields the rest of the same answer") {
  const auto values = brief_engine();
  int ended = 0;
  for (const std::string_view user : {"hi", "Grüße, 世界!", "a longer text, with\nlines ", " 😀 "}) {
    for (const std::size_t min_tokens : {0, 9}) {
      auto body = chat_of(user, 24);
      body["min_tokens"] = min_tokens;
      const auto whole = answer(parse_chat(body, values), values);
      ended += whole.stopped ? 1 : 0;
      std::string said;
      for (std::size_t cut = 1; cut < whole.pieces.size(); ++cut) {
        said += whole.pieces[cut - 1];
        auto rest = chat_of(user, 24 - cut);
        rest["min_tokens"] = min_tokens - std::min(min_tokens, cut);
        rest.at("messages").as_array().push_back({{"role", "assistant"}, {"content", said}});
        rest["continue_final_message"] = true;
        rest["add_generation_prompt"] = false;
        const auto continued = answer(parse_chat(rest, values), values);
        REQUIRE(continued.all() == whole.all(cut));
        REQUIRE(continued.stopped == whole.stopped);
        REQUIRE(continued.pieces.size() == whole.pieces.size() - cut);
      }
    }
  }
  CHECK(ended > 0);
}

TEST_CASE("a completion whose prompt has grown by a part of its answer yields the rest") {
  const auto values = brief_engine();
  for (const std::string_view prompt : {"Once upon a time", "x", "ends with a space "}) {
    for (const bool ignore_eos : {false, true}) {
      json::object body{{"prompt", json::string(prompt)}, {"max_tokens", 24}, {"ignore_eos", ignore_eos}, {"seed", 5}};
      const auto whole = answer(parse_completion(body, values), values);
      std::string grown(prompt);
      for (std::size_t cut = 1; cut < whole.pieces.size(); ++cut) {
        grown += whole.pieces[cut - 1];
        body["prompt"] = grown;
        body["max_tokens"] = 24 - cut;
        const auto continued = answer(parse_completion(body, values), values);
        REQUIRE(continued.all() == whole.all(cut));
        REQUIRE(continued.stopped == whole.stopped);
      }
    }
  }
}
