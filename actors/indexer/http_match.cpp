#include <algorithm>

#include "actors/indexer/http_api.hpp"
#include "actors/indexer/match_sort.hpp"
#include "actors/indexer/prompt_call.hpp"
#include "actors/runtime/http/client.hpp"

namespace infernex::indexer {
namespace {

using steady = std::chrono::steady_clock;

/// Engines asked for one prompt's tokens at most.
constexpr std::size_t max_engines_asked = 2;
constexpr std::size_t max_answer_bytes = 32 << 20;

http::task<prompt_answer> ask(api_call& call, const engine_entry& engine, prompt_step step,
                              const match_question& question) {
  const auto left = std::chrono::duration_cast<std::chrono::milliseconds>(call.deadline - steady::now());
  const auto base = http::parse_url(engine.url);
  if (!base || left.count() <= 0) co_return prompt_answer{};
  const auto target = base->path + prompt_path(step, question);
  const auto body = prompt_body(question);
  http::fields headers;
  headers.push_back({"Content-Type", "application/json"});
  if (const auto credential = http::find(call.in.headers, "authorization"); !credential.empty())
    headers.push_back({"Authorization", std::string(credential)});
  http::outgoing what{"POST", target, std::move(headers), body};
  http::call_options options;
  options.connect_timeout = std::min(options.connect_timeout, left);
  options.response_timeout = options.idle_timeout = left;
  const auto response = co_await call.worker.upstream().fetch(base->at, what, options, max_answer_bytes);
  if (!response) co_return prompt_answer{};
  co_return read_prompt_answer(response->status, response->body);
}

struct tokens_found {
  std::vector<std::uint32_t> ids;
  std::string_view by;
  std::optional<refusal> problem;
};

/// Asks engines of the model that are ready, in turn.
http::task<tokens_found> find_tokens(api_call& call, const match_question& question, const engine_list::model& model) {
  tokens_found found;
  std::size_t asked = 0;
  const auto first = call.at.turn++;
  for (std::size_t i = 0; i < model.engines.size() && asked < max_engines_asked; ++i) {
    const auto& engine = model.engines[(first + i) % model.engines.size()];
    if (!engine.answers()) continue;
    ++asked;
    for (const auto step : {prompt_step::render, prompt_step::tokenize}) {
      auto answer = co_await ask(call, engine, step, question);
      if (answer.outcome == prompt_answer::verdict::tokens) {
        found.ids = std::move(answer.ids);
        found.by = name(step);
        co_return found;
      }
      if (answer.outcome == prompt_answer::verdict::refused) {
        found.problem = refusal{400, "engine " + engine.instance + ": " + answer.message, {}, {}};
        co_return found;
      }
    }
  }
  const auto* why = asked == 0 ? "no engine of the model is ready to turn the prompt into tokens; send token_ids"
                               : "no engine of the model could turn the prompt into tokens; send token_ids";
  found.problem = refusal{503, why, "no_tokens", {}};
  co_return found;
}

/// The names in the rows lie in the reader, so an answer is made before the next lookup.
std::string answer_one(api_call& call, const match_question& question, const index_page& page,
                       const match_subject& about) {
  const auto found = look_up(call, question.index, about.chain);
  const auto rows =
      sort_matches(found, page.engines->find(question.index), page.sources_of(question.index), question.top);
  return render_match(about, rows, steady::now());
}

std::string answer_several(api_call& call, const match_question& question, const index_page& page) {
  const auto sources = page.sources_of(question.index);
  const auto* engines = page.engines->find(question.index);
  std::vector<std::vector<match_row>> matches;
  // Rows outlive their lookup here: names are those of the page's sources, not the reader's.
  for (const auto& chain : question.chains.lists) {
    auto& rows =
        matches.emplace_back(sort_matches(look_up(call, question.index, chain), engines, sources, question.top));
    std::erase_if(rows, [](const match_row& row) { return row.blocks == 0 || !row.source; });
    for (auto& row : rows) row.instance = row.source->instance;
  }
  return render_matches(question, matches, sources, steady::now());
}

}  // namespace

http::task<void> serve_match_sort(api_call& call) {
  match_question question;
  auto problem = read_match_question(call.in.body, question);
  const auto page = call.at.page();
  if (!problem) problem = settle_names(question, *page->engines);
  if (problem) {
    co_await refuse(call.out, *std::move(problem));
    co_return;
  }
  if (question.by == match_question::form::keys) {
    const auto body = question.chains.several
                          ? answer_several(call, question, *page)
                          : answer_one(call, question, *page, {question, {}, "keys", question.chains.lists.at(0)});
    co_await answer_json(call.out, body);
    co_return;
  }
  tokens_found tokens{std::move(question.token_ids), "given", std::nullopt};
  if (question.by != match_question::form::tokens)
    tokens = co_await find_tokens(call, question, *page->engines->find(question.index));
  if (tokens.problem) {
    co_await refuse(call.out, *std::move(tokens.problem));
    co_return;
  }
  const auto chain = keys_of(question, tokens.ids, false);
  // What was asked of an engine took its time: the freshest page goes with the freshest lookup.
  const auto body = answer_one(call, question, *call.at.page(), {question, tokens.ids.size(), tokens.by, chain});
  co_await answer_json(call.out, body);
}

}  // namespace infernex::indexer
