#include "actors/indexer/prompt_call.hpp"

#include <boost/json.hpp>

namespace infernex::indexer {

namespace json = boost::json;

namespace {

std::string message_of(const json::value& answer) {
  const auto* fields = answer.if_object();
  const auto* error = fields ? fields->if_contains("error") : nullptr;
  if (error && error->is_object()) fields = &error->get_object();
  const auto* message = fields ? fields->if_contains("message") : nullptr;
  return message && message->is_string() ? std::string(message->get_string().c_str()) : std::string();
}

}  // namespace

std::string_view name(prompt_step step) { return step == prompt_step::render ? "render" : "tokenize"; }

std::string prompt_body(const match_question& question) {
  // `to_render` is an object with at least the prompt in it.
  return "{\"model\":" + json::serialize(json::string(question.model)) + "," + question.to_render.substr(1);
}

std::string prompt_path(prompt_step step, const match_question& question) {
  if (step == prompt_step::tokenize) return "/tokenize";
  return question.by == match_question::form::messages ? "/v1/chat/completions/render" : "/v1/completions/render";
}

prompt_answer read_prompt_answer(unsigned status, std::string_view body) {
  prompt_answer answer{engine::read_token_answer(status, body), {}};
  if (answer.verdict != engine::token_verdict::refused) return answer;
  boost::system::error_code problem;
  const auto parsed = json::parse({body.data(), body.size()}, problem);
  answer.message = problem ? "the engine answers " + std::to_string(status) : message_of(parsed);
  return answer;
}

}  // namespace infernex::indexer
