#include <algorithm>

#include <boost/asio/steady_timer.hpp>

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

/// Prompts that engines are asked about at once: each holds a body and an answer.
constexpr std::size_t max_asking = 64;

/// While a prompt's tokens are asked for: ends every call once the request's time is over, or its client gone.
class asking {
 public:
  explicit asking(api_call& call) : call_(call), timer_(call.worker.context()) {
    ++call_.at.asking;
    timer_.expires_at(call.deadline);
    // By value: a handler that is queued already runs although the timer, and the frame it lies in, are gone.
    timer_.async_wait([calls = calls_](const auto& stopped) {
      if (!stopped) calls->request();
    });
    call_.out.on_client_gone([calls = calls_] { calls->request(); });
  }
  asking(const asking&) = delete;
  asking& operator=(const asking&) = delete;
  ~asking() {
    call_.out.on_client_gone({});
    --call_.at.asking;
  }
  bool over() const { return calls_->requested() || steady::now() >= call_.deadline; }
  http::cancel_source* calls() const { return calls_.get(); }

 private:
  api_call& call_;
  http::asio::steady_timer timer_;
  std::shared_ptr<http::cancel_source> calls_ = std::make_shared<http::cancel_source>();
};

http::task<prompt_answer> ask(api_call& call, const asking& until, const engine_entry& engine, prompt_step step,
                              const match_question& question) {
  const auto left = std::chrono::duration_cast<std::chrono::milliseconds>(call.deadline - steady::now());
  const auto base = http::parse_url(engine.url);
  if (!base || left.count() <= 0) co_return prompt_answer{};
  const auto target = base->path + prompt_path(step, question);
  const auto body = prompt_body(question);
  http::fields headers;
  headers.push_back({"Content-Type", "application/json"});
  // Not to whoever anybody may have registered.
  if (const auto credential = http::find(call.in.headers, "authorization");
      !credential.empty() && !call.at.known.has(engine.instance))
    headers.push_back({"Authorization", std::string(credential)});
  http::outgoing what{"POST", target, std::move(headers), body};
  http::call_options options;
  options.connect_timeout = std::min(options.connect_timeout, left);
  options.response_timeout = options.idle_timeout = left;
  options.cancel = until.calls();
  const auto response = co_await call.worker.upstream().fetch(base->at, what, options, max_answer_bytes);
  if (!response) co_return prompt_answer{};
  co_return read_prompt_answer(response->status, response->body);
}

struct tokens_found {
  std::vector<std::uint32_t> ids;
  std::string_view by;
  std::optional<refusal> problem;
};

/// Asks one engine, by each step. True: no other need be asked.
http::task<bool> ask_engine(api_call& call, const asking& until, const engine_entry& engine,
                            const match_question& question, tokens_found& found) {
  using verdict = engine::token_verdict;
  for (const auto step : {prompt_step::render, prompt_step::tokenize}) {
    if (until.over()) co_return false;
    auto answer = co_await ask(call, until, engine, step, question);
    switch (answer.verdict) {
      case verdict::tokens:
        found.ids = std::move(answer.ids);
        found.by = name(step);
        found.problem.reset();
        co_return true;
      case verdict::refused:
        found.problem = refusal{400, "engine " + engine.instance + ": " + answer.message, {}, {}};
        co_return true;
      case verdict::denied:
        found.problem = refusal{502,
                                "engine " + engine.instance + " refused the credentials it was sent",
                                "engine_refused_credentials",
                                {}};
        co_return false;
      case verdict::absent:
      case verdict::failed:
        break;
    }
  }
  co_return false;
}

/// Asks engines of the model that are ready, in turn.
http::task<tokens_found> find_tokens(api_call& call, const match_question& question, const engine_list::model& model) {
  tokens_found found;
  if (call.at.asking >= max_asking) {
    found.problem = refusal{429, "too many prompts are being turned into tokens; send token_ids", "overloaded", {}};
    co_return found;
  }
  const asking until(call);
  std::size_t asked = 0;
  const auto first = call.at.turn++;
  for (std::size_t i = 0; i < model.engines.size() && asked < max_engines_asked && !until.over(); ++i) {
    const auto& engine = model.engines[(first + i) % model.engines.size()];
    if (!engine.answers()) continue;
    ++asked;
    if (co_await ask_engine(call, until, engine, question, found)) co_return found;
  }
  if (found.problem) co_return found;
  if (until.over()) {
    found.problem = refusal{504, "no engine gave the prompt's tokens in time", "timed_out", {}};
    co_return found;
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
  const auto most = rows_of_each(question.chains.lists.size(), question.top);
  std::vector<std::vector<match_row>> matches;
  matches.reserve(question.chains.lists.size());
  for (const auto& chain : question.chains.lists)
    matches.push_back(best_matches(look_up(call, question.index, chain), engines, sources, most));
  return render_matches(question, matches, engines, sources, steady::now());
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
