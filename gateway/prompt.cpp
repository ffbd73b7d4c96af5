#include "gateway/prompt.hpp"

#include "actors/engine/block_key.hpp"
#include "gateway/text_keys.hpp"

namespace infernex::gateway {
namespace {

/// Engines asked for one prompt's tokens at most.
constexpr int max_engines_asked = 2;

void use_keys(session& s, const prompt_keys& found, std::string_view by) {
  s.where.key_mode = fb::KeyMode::Token;
  s.where.prompt_tokens = found.prompt_tokens;
  s.where.keys = found.keys;
  s.tokens_by = by;
}

prompt_keys keys_of(const session& s, std::span<const std::uint32_t> tokens) {
  const engine::key_root root{s.where.model, s.where.adapter, s.body.cache_salt, s.where.block_size};
  return {static_cast<std::uint32_t>(tokens.size()),
          engine::chain_keys(root, tokens, engine::cacheable_blocks(tokens.size(), s.where.block_size))};
}

/// The next ready engine in turn, those in back-off last; null if none is ready.
const router::endpoint* engine_in_turn(session& s, clock_point now) {
  const auto& endpoints = s.model->endpoints;
  const auto turn = s.at.token_turn++;
  const router::endpoint* in_backoff = nullptr;
  for (std::size_t i = 0; i < endpoints.size(); ++i) {
    const auto& endpoint = endpoints[(turn + i) % endpoints.size()];
    if (!endpoint.ready()) continue;
    if (!s.at.backoff.out(endpoint.instance, now)) return &endpoint;
    if (!in_backoff) in_backoff = &endpoint;
  }
  return in_backoff;
}

/// One call to one engine. `failed` also stands for every trouble on the way.
http::task<token_answer> ask(session& s, const router::endpoint& engine, token_step step) {
  const auto& how = s.at.shared.how.tokens;
  const auto call = make_token_call(step, s.kind, s.body, how);
  const auto base = http::parse_url(engine.url);
  if (!base) co_return token_answer{};
  const auto target = base->path + call.path;
  http::fields headers{{"Content-Type", "application/json"}, {"X-Request-Id", s.request_id}};
  if (const auto credential = http::find(s.in.headers, "authorization"); !credential.empty()) {
    headers.push_back({"Authorization", std::string(credential)});
  }
  const http::outgoing what{"POST", target, std::move(headers), call.body.empty() ? s.in.body : call.body};
  http::call_options options;
  options.connect_timeout = s.at.shared.how.connect_timeout;
  options.response_timeout = options.idle_timeout = call.timeout;
  options.cancel = &s.upstream;
  const auto response = co_await s.at.worker.upstream().fetch(base->at, what, options, how.max_answer_bytes);
  if (!response) {
    if (worth_retry(response.failure().code)) s.at.backoff.failed(engine.instance, std::chrono::steady_clock::now());
    co_return token_answer{};
  }
  co_return read_token_answer(response->status, response->body);
}

/// Walks the chain on one engine. True if the search is over: keys found, or no other engine would help.
http::task<bool> ask_engine(session& s, const router::endpoint& engine) {
  const auto& how = s.at.shared.how.tokens;
  std::size_t step = 0;
  for (;;) {
    const auto now = std::chrono::steady_clock::now();
    step = next_step(how.chain, step, engine.instance, s.at.endpoints, now);
    if (step >= how.chain.size() || how.chain[step] == token_step::text)
      co_return !s.at.backoff.out(engine.instance, now);
    const auto answer = co_await ask(s, engine, how.chain[step]);
    if (s.given_up()) co_return true;
    const auto answered = std::chrono::steady_clock::now();
    switch (answer.verdict) {
      case token_verdict::tokens: {
        auto found = keys_of(s, answer.ids);
        use_keys(s, found, name(how.chain[step]));
        s.at.keys.put(s.body.prompt_hash, s.where.block_size, std::move(found));
        co_return true;
      }
      case token_verdict::refused:
      case token_verdict::denied:
        co_return true;  // the engine that gets the request will tell the client
      case token_verdict::absent:
        s.at.endpoints.avoid(engine.instance, how.chain[step], answered + how.absent_for);
        break;
      case token_verdict::failed:
        s.at.endpoints.avoid(engine.instance, how.chain[step], answered + how.failed_for);
        if (s.at.backoff.out(engine.instance, answered)) co_return false;
        break;
    }
    ++step;
  }
}

http::task<void> search(session& s) {
  const auto block_size = s.model->block_size();
  const auto& chain = s.at.shared.how.tokens.chain;
  if (!block_size || *block_size == 0 || chain.empty() || chain.front() == token_step::text) co_return;
  s.where.block_size = *block_size;
  if (s.body.form == prompt_form::tokens || s.body.form == prompt_form::token_lists) {
    use_keys(s, keys_of(s, s.body.token_ids), "given");
    co_return;
  }
  if (const auto* known = s.at.keys.get(s.body.prompt_hash, *block_size)) {
    use_keys(s, *known, "cache");
    co_return;
  }
  for (int asked = 0; asked < max_engines_asked && !s.given_up(); ++asked) {
    const auto* engine = engine_in_turn(s, std::chrono::steady_clock::now());
    if (!engine || co_await ask_engine(s, *engine)) co_return;
  }
}

void use_text(session& s) {
  const text_root root{s.where.model, s.where.adapter, s.body.cache_salt, s.kind, s.body.rendering};
  s.where.key_mode = fb::KeyMode::Text;
  s.where.block_size = router::text_block_tokens;
  s.where.keys = text_keys(root, s.body.prompt, max_query_keys);
}

}  // namespace

http::task<void> find_prompt_keys(session& s) {
  co_await search(s);
  if (s.where.key_mode == fb::KeyMode::Text) use_text(s);
  s.at.metrics.tokenized(s.tokens_by).Increment();
}

}  // namespace infernex::gateway
