#include "gateway/session.hpp"

#include "gateway/prompt.hpp"
#include "gateway/relay.hpp"
#include "gateway/routing_headers.hpp"

namespace infernex::gateway {
namespace {

/// Counts a request in flight while it lives, if there is room.
class admission {
 public:
  admission(gateway_shared& shared, prometheus::Gauge& gauge) : shared_(shared), gauge_(gauge) {
    admitted_ = shared_.in_flight.fetch_add(1) < shared_.how.max_in_flight;
    gauge_.Increment();
  }
  admission(const admission&) = delete;
  ~admission() {
    shared_.in_flight.fetch_sub(1);
    gauge_.Decrement();
  }
  bool admitted() const { return admitted_; }

 private:
  gateway_shared& shared_;
  prometheus::Gauge& gauge_;
  bool admitted_;
};

double milliseconds(std::chrono::steady_clock::duration d) {
  return std::chrono::duration<double, std::milli>(d).count();
}

/// The session's last word: metrics and the finished-request record.
void finish(session& s) {
  auto& m = s.at.metrics;
  if (s.client_gone) {
    s.outcome = fb::Outcome::ClientGone;
    m.client_gone.Increment();
    if (s.status == 0) s.status = 499;
  }
  const auto took = std::chrono::steady_clock::now() - s.in.received_at;
  m.requests(s.status).Increment();
  m.duration.Observe(std::chrono::duration<double>(took).count());
  std::optional<std::uint32_t> expected;
  if (s.expected_blocks) expected = cached_tokens(s.where, *s.expected_blocks, s.used.prompt_tokens);
  if (expected && s.used.cached_tokens) {
    auto& parity = m.parity[s.by_prediction ? 1 : 0];
    parity.predicted->Increment(*expected);
    parity.reported->Increment(*s.used.cached_tokens);
  }
  if (!s.model) return;
  life_finish f;
  f.model = s.model->model;
  f.record.request_id = s.request_id;
  f.record.instance = s.instance;
  if (!s.prefilled_somewhere) f.computed_at = s.prefill_instance.empty() ? s.instance : s.prefill_instance;
  f.record.outcome = s.outcome;
  f.record.status = static_cast<std::uint16_t>(s.status);
  f.record.attempts = static_cast<std::uint8_t>(std::min(s.attempt, 255U));
  const auto prompt_tokens = s.used.prompt_tokens ? s.used.prompt_tokens : s.where.prompt_tokens;
  if (prompt_tokens) f.record.prompt_tokens = *prompt_tokens;
  if (s.used.completion_tokens) f.record.completion_tokens = *s.used.completion_tokens;
  if (expected) f.record.predicted_cached_tokens = *expected;
  f.by_prediction = s.by_prediction;
  // A second attempt's time to first token has the first one's in it.
  if (s.attempt == 1) {
    f.met = s.met;
    f.met_at_prefill = s.met_at_prefill;
  }
  if (s.used.cached_tokens) f.record.cached_tokens = *s.used.cached_tokens;
  if (s.ttft) f.record.ttft_ms = milliseconds(*s.ttft);
  f.record.duration_ms = milliseconds(took);
  s.at.note(std::move(f));
}

http::task<void> refuse(session& s, const answer& what) {
  s.status = what.status;
  if (what.status == 504) s.outcome = fb::Outcome::TimedOut;
  if (what.status == 502 || what.code == "engines_failed") s.outcome = fb::Outcome::EngineFailed;
  http::fields extra{{"X-Request-Id", s.request_id}};
  if (!s.instance.empty()) extra.push_back({"x-infernex-endpoint", header_line(s.instance)});
  if (!s.decision.empty()) extra.push_back({"x-infernex-decision", header_line(s.decision)});
  co_await send_answer(s.out, what, std::move(extra));
}

/// From now on the client's leaving and the deadline end whatever the session waits for.
void watch(const std::shared_ptr<session>& s) {
  const std::weak_ptr<session> weak = s;
  s->out.on_client_gone([weak] {
    if (const auto alive = weak.lock()) {
      alive->client_gone = true;
      alive->wake.cancel();
      alive->upstream.request();
      if (const auto also = alive->also_gone) also();
    }
  });
  s->ends_at = s->in.received_at + s->at.shared.how.timeout;
  s->deadline.expires_at(s->ends_at);
  s->deadline.async_wait([weak](const boost::system::error_code& problem) {
    const auto alive = problem ? nullptr : weak.lock();
    // A stream that has begun has no deadline any more; its cancelled wait may have been on its way already.
    if (!alive || alive->out.started()) return;
    alive->too_late = true;
    alive->wake.cancel();
    alive->upstream.request();
  });
}

/// Reads and checks the request; an answer if it cannot go on.
std::optional<answer> prepare(session& s) {
  auto scanned = s.at.scanner.scan(s.kind, s.in.body);
  if (const auto* problem = std::get_if<bad_request>(&scanned)) return bad_body(*problem);
  s.body = std::get<openai_request>(std::move(scanned));
  s.topology = s.at.topology();
  s.model = s.topology ? s.topology->find(s.body.model) : nullptr;
  if (!s.model) {
    // A gateway that has just started knows no model yet: no reason to call this one unknown.
    if (!s.topology || s.topology->models.empty()) return no_engine(s.body.model, "no engine has announced itself yet");
    return unknown_model(s.body.model);
  }
  s.where.request_id = s.request_id;
  s.where.model = s.model->model;
  if (s.body.model != s.model->model) s.where.adapter = s.body.model;
  s.where.prompt_bytes = static_cast<std::uint32_t>(s.body.prompt.size());
  s.where.max_tokens = s.body.max_tokens;
  s.where.headers = routing_headers(s.in.headers, s.at.headers());
  s.where.ends_at = s.ends_at;
  return std::nullopt;
}

std::vector<std::string_view> ready_instances(const session& s) {
  std::vector<std::string_view> names;
  for (const auto& e : s.model->endpoints) {
    if (e.ready()) names.push_back(e.instance);
  }
  return names;
}

/// Asks for engines and offers them to `tries`.
http::task<void> route(session& s, attempts& tries) {
  refresh_topology(s);
  s.where.exclude = exclusions(tries.failures(), s.at.backoff, ready_instances(s), std::chrono::steady_clock::now());
  auto chosen = co_await s.at.route->choose(s.where, s.topology, s.wake);
  // It may have waited long for an engine that has come meanwhile, at which it is to be counted.
  refresh_topology(s);
  if (chosen.by_fallback) s.at.metrics.route_fallbacks.Increment();
  s.reason = chosen.reason;
  s.decision = chosen.reason + "; keys: " + std::string(s.tokens_by);
  if (!tries.story().empty()) s.decision += "; after " + tries.story();
  s.index_used = chosen.index_used;
  s.shed = chosen.shed;
  name_groups(chosen.ranked, *s.model);
  tries.offer(std::move(chosen.ranked));
}

http::task<void> forward(session& s, std::string_view upstream_path) {
  attempts tries(s.at.shared.how.max_attempts);
  for (;;) {
    auto to = tries.next(s.at.backoff, std::chrono::steady_clock::now());
    if (!to && !tries.exhausted()) {
      co_await route(s, tries);
      if (s.client_gone) co_return;
      if (s.too_late) co_return co_await refuse(s, too_slow(s.at.shared.how.timeout));
      to = tries.next(s.at.backoff, std::chrono::steady_clock::now());
    }
    if (!to) break;
    s.attempt = tries.count();
    if (s.attempt > 1) s.at.metrics.retries.Increment();
    s.by_prediction = to->by_prediction;
    s.expected_blocks = expected_blocks(*to, s.index_used, s.model->find(to->instance));
    const auto result = co_await relay(s, *to, upstream_path);
    if (result.done) co_return;
    if (result.instead) co_return co_await refuse(s, *result.instead);
    if (result.engine_failed) s.at.backoff.failed(to->instance, std::chrono::steady_clock::now());
    tries.failed(result.failure);
  }
  s.instance.clear();
  s.prefill_instance.clear();
  s.prefilled_somewhere = false;
  if (s.shed) co_return co_await refuse(s, all_saturated(s.body.model, s.reason, *s.shed));
  if (!tries.story().empty()) co_return co_await refuse(s, engines_failed(tries.story()));
  co_await refuse(s, no_engine(s.body.model, s.reason));
}

http::task<void> run(session& s, std::string_view upstream_path) {
  const admission admitted(s.at.shared, s.at.metrics.in_flight);
  if (!admitted.admitted()) co_return co_await refuse(s, too_busy(s.at.shared.how.max_in_flight));
  if (const auto problem = prepare(s)) co_return co_await refuse(s, *problem);
  if (s.model->ready_count() > 0) co_await find_prompt_keys(s);
  if (s.client_gone) co_return;
  if (s.too_late) co_return co_await refuse(s, too_slow(s.at.shared.how.timeout));
  co_await forward(s, upstream_path);
}

}  // namespace

http::task<void> serve_completion(hand& at, api kind, std::string_view upstream_path, http::request& in,
                                  http::responder& out) {
  const auto s = std::make_shared<session>(at, kind, in, out);
  const auto given = http::find(in.headers, "x-request-id");
  s->request_id = usable_request_id(given) ? std::string(given) : at.new_request_id();
  watch(s);
  co_await run(*s, upstream_path);
  out.on_client_gone({});
  finish(*s);
}

void refresh_topology(session& s) {
  auto topology = s.at.topology();
  if (!topology || topology == s.topology) return;
  const auto* model = topology->find(s.body.model);
  if (!model) return;
  s.topology = std::move(topology);
  s.model = model;
}

http::task<void> send_answer(http::responder& out, const answer& what, http::fields extra) {
  if (what.retry_after) extra.push_back({"Retry-After", std::to_string(what.retry_after->count())});
  const auto body = http::openai_error(what.status, what.message, what.code, what.param);
  co_await out.send(what.status, "application/json", body, std::move(extra));
}

}  // namespace infernex::gateway
