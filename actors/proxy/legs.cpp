#include <array>

#include "actors/proxy/exchange_run.hpp"
#include "actors/runtime/http/end_to_end.hpp"

namespace infernex::proxy {
namespace {

constexpr std::size_t max_prefill_answer = 16 << 20;
constexpr std::size_t max_bootstrap_answer = 1 << 20;
/// For the end of an answer whose last event the client has already.
constexpr std::chrono::milliseconds end_timeout{1'000};

constexpr std::array<std::string_view, 5> not_to_client = {"content-length", "content-type", "date", "server",
                                                           "x-request-id"};

std::string_view story_of(errc how) {
  switch (how) {
    case errc::unreachable:
      return "refused the connection";
    case errc::connection_lost:
      return "broke the connection";
    case errc::timed_out:
      return "did not answer in time";
    case errc::malformed_input:
      return "answered something that is not HTTP";
    case errc::too_large:
      return "sent more than is accepted";
    default:
      return describe(how);
  }
}

void take_head(exchange_run& run, const http::fields& of_engine) {
  if (const auto type = http::find(of_engine, "content-type"); !type.empty()) run.content_type = type;
  run.answer_headers = http::end_to_end(of_engine, not_to_client);
}

http::fields client_headers(exchange_run& run) {
  auto headers = std::exchange(run.answer_headers, {});
  headers.push_back({"X-Request-Id", run.plan.request_id});
  const auto& pair = run.talk.present().pair;
  if (pair.prefill) headers.push_back({"x-infernex-prefill", pair.prefill->address});
  if (!pair.decode.address.empty()) headers.push_back({"x-infernex-decode", pair.decode.address});
  return headers;
}

void client_left(exchange_run& run) {
  run.client_gone = true;
  run.take(run.talk.on_client_gone());
}

void note_first_token(exchange_run& run) {
  if (run.ttft || !run.talk.first_token()) return;
  const auto now = steady::now();
  run.ttft = now - run.received_at;
  run.deadline.cancel();
  auto& m = *run.plan.metrics;
  m.ttft.Observe(std::chrono::duration<double>(*run.ttft).count());
  if (run.talk.retries() > 0 || !run.decode_sent) return;
  // Until decode was sent, but for the wait for prefill; and from its first token to the client's.
  const auto began = run.plan.began.value_or(run.received_at);
  const auto added = *run.decode_sent - began - run.prefill_took + (now - run.piece_came);
  m.added_ttft.Observe(std::chrono::duration<double>(added).count());
}

http::task<void> send_stream(exchange_run& run, const action::forward& what) {
  if (!run.out->started() && !what.bytes.empty()) {
    run.status = 200;
    auto headers = client_headers(run);
    if (!co_await run.out->start_stream(200, run.content_type, std::move(headers))) co_return client_left(run);
  }
  if (!what.bytes.empty() && !co_await run.out->write(what.bytes)) co_return client_left(run);
  note_first_token(run);
  if (what.last && !co_await run.out->end_stream()) client_left(run);
}

/// As an answer, or as the last event of a stream that has begun, which is then broken off: no client takes it for
/// whole.
http::task<void> send_failure(exchange_run& run, const action::fail& what) {
  run.failed = true;
  const auto body = http::openai_error(what.status, what.message, what.code);
  if (run.out->started()) {
    const auto event = "data: " + body + "\n\n";
    co_await run.out->write(event);
    run.out->abort();
    co_return;
  }
  run.status = what.status;
  // No engine's headers: it is our answer.
  run.answer_headers.clear();
  auto headers = client_headers(run);
  if (what.status == 503 || what.status == 502) headers.push_back({"Retry-After", "1"});
  if (!co_await run.out->send(what.status, "application/json", body, std::move(headers))) run.client_gone = true;
}

http::task<void> send_whole(exchange_run& run, const action::answer& what) {
  run.status = what.status;
  run.refused = what.status >= 400;
  auto headers = client_headers(run);
  if (!co_await run.out->send(what.status, run.content_type, what.body, std::move(headers))) run.client_gone = true;
}

/// The rest of an answer that the client has had, so that the connection can be used again.
http::task<void> read_out(exchange_run& run, http::exchange& from, std::shared_ptr<leg_call> call) {
  if (run.client_gone || run.failed) co_return;
  expire_after(call, end_timeout);
  const auto rest = co_await from.read_some();
  call->deadline.cancel();
  static_cast<void>(rest);
}

}  // namespace

void expire_after(const std::shared_ptr<leg_call>& call, std::chrono::milliseconds limit) {
  call->deadline.expires_after(limit);
  call->deadline.async_wait([weak = std::weak_ptr(call)](const boost::system::error_code& problem) {
    const auto alive = problem ? nullptr : weak.lock();
    if (!alive) return;
    alive->too_late = true;
    alive->cancel.request();
  });
}

leg_failure failure_of(const error& problem, const leg_call& call) {
  const auto how = call.too_late ? errc::timed_out : problem.code;
  return {std::string(story_of(how)), how == errc::timed_out, how == errc::unreachable, how == errc::connection_lost};
}

http::task<void> give_to_client(exchange_run& run) {
  while (!run.waiting.empty()) {
    auto& front = run.waiting.front();
    const bool for_client = std::holds_alternative<action::forward>(front) ||
                            std::holds_alternative<action::answer>(front) ||
                            std::holds_alternative<action::fail>(front);
    if (!for_client) co_return;
    const auto next = std::move(front);
    run.waiting.pop_front();
    if (run.client_gone) continue;
    if (const auto* f = std::get_if<action::forward>(&next)) co_await send_stream(run, *f);
    if (const auto* a = std::get_if<action::answer>(&next)) co_await send_whole(run, *a);
    if (const auto* e = std::get_if<action::fail>(&next)) co_await send_failure(run, *e);
  }
}

http::task<void> prefill_leg(run_pointer run, std::shared_ptr<leg_call> call, unsigned attempt, engine_ref to,
                             std::string id, outgoing_leg what) {
  const auto base = http::parse_url(to.url);
  if (!base) {
    run->take(run->talk.on_leg_failed(attempt, leg::prefill, failure_of(base.failure(), *call)));
    co_return run->wake_up();
  }
  const auto began = steady::now();
  auto& how = *run->plan.how;
  expire_after(call, how.prefill_timeout);
  http::call_options options;
  options.connect_timeout = how.connect_timeout;
  options.response_timeout = options.idle_timeout = how.prefill_timeout;
  options.cancel = &call->cancel;
  const auto target = base->path + run->plan.target;
  const http::outgoing request{"POST", target, run->headers_for(to, what, id), what.body};
  const auto answer = co_await run->on.upstream().fetch(base->at, request, options, max_prefill_answer);
  call->deadline.cancel();
  const auto took = steady::now() - began;
  if (!answer) {
    run->take(run->talk.on_leg_failed(attempt, leg::prefill, failure_of(answer.failure(), *call)));
  } else {
    run->plan.metrics->prefill_seconds.Observe(std::chrono::duration<double>(took).count());
    if (attempt == run->talk.attempt_number()) {
      if (!run->decode_sent) run->prefill_took = took;
      run->charge.prefilled();
      run->plan.pairs->on_prefilled();
      if (answer->status != 200 && !run->talk.over()) take_head(*run, answer->headers);
    }
    run->take(run->talk.on_prefill_answer(attempt, answer->status, answer->body));
  }
  run->wake_up();
}

http::task<void> release_leg(run_pointer run, action::release what) {
  action::choose_pair wish;
  wish.avoid_decodes = what.avoid;
  wish.prefer_decode = what.decode;
  wish.decode_only = true;
  // Under an id of its own: a later attempt may be at the same engine.
  const auto headers_of = run->headers_for({}, what.what, run->new_id());
  auto chosen = co_await run->plan.pairs->choose(wish);
  const auto* to = std::get_if<chosen_pair>(&chosen);
  const auto base = to ? http::parse_url(to->pair.decode.url) : result<http::url>(errc::not_found);
  if (!base) co_return;
  const auto call = std::make_shared<leg_call>(run->on);
  expire_after(call, run->plan.how->release_timeout);
  http::call_options options;
  options.connect_timeout = options.response_timeout = options.idle_timeout = run->plan.how->release_timeout;
  options.cancel = &call->cancel;
  const auto target = base->path + run->plan.target;
  const http::outgoing request{"POST", target, headers_of, what.what.body};
  const auto answer = co_await run->on.upstream().fetch(base->at, request, options, max_prefill_answer);
  call->deadline.cancel();
  static_cast<void>(answer);
}

http::task<void> query_bootstrap(exchange_run& run) {
  const auto attempt = run.talk.attempt_number();
  const auto from = *run.talk.present().pair.prefill;
  const auto call = std::make_shared<leg_call>(run.on);
  run.prefill_call = call;
  expire_after(call, run.plan.how->connect_timeout);
  http::call_options options;
  options.connect_timeout = options.response_timeout = options.idle_timeout = run.plan.how->connect_timeout;
  options.cancel = &call->cancel;
  const http::origin at{from.host(), from.bootstrap_port.value_or(8998)};
  const http::outgoing request{"GET", "/query", {}, {}};
  const auto answer = co_await run.on.upstream().fetch(at, request, options, max_bootstrap_answer);
  call->deadline.cancel();
  if (!answer || answer->status != 200) {
    auto failure = answer ? leg_failure{"answered " + std::to_string(answer->status), false, false}
                          : failure_of(answer.failure(), *call);
    failure.why = "(its bootstrap endpoint) " + failure.why;
    co_return run.take(run.talk.on_bootstrap(attempt, failure));
  }
  run.plan.bootstraps->put(from.address, from.life(), answer->body, steady::now());
  run.take(run.talk.on_bootstrap(attempt, answer->body));
}

http::task<void> decode_leg(exchange_run& run) {
  const auto what = *std::exchange(run.decode, std::nullopt);
  const auto attempt = run.talk.attempt_number();
  const auto to = run.talk.present().pair.decode;
  const auto call = std::make_shared<leg_call>(run.on);
  run.decode_call = call;
  auto& how = *run.plan.how;
  const auto failed = [&](const error& problem) {
    run.take(run.talk.on_leg_failed(attempt, leg::decode, failure_of(problem, *call)));
  };
  const auto base = http::parse_url(to.url);
  if (!base) co_return failed(base.failure());
  const bool stream = run.plan.facts.stream;
  expire_after(call, stream ? how.first_token_timeout : how.timeout);
  http::call_options options;
  options.connect_timeout = how.connect_timeout;
  options.response_timeout = how.timeout;
  options.idle_timeout = stream ? how.stream_idle_timeout : how.timeout;
  options.cancel = &call->cancel;
  const auto target = base->path + run.plan.target;
  const http::outgoing request{"POST", target, run.headers_for(to, what, run.talk.present().id), what.body};
  run.decode_sent = steady::now();
  auto opened = co_await run.on.upstream().open(base->at, request, options);
  if (!opened) co_return failed(opened.failure());
  if (!run.out->started()) take_head(run, opened->headers());
  const bool events = http::find(opened->headers(), "content-type").starts_with("text/event-stream");
  if (opened->status() != 200 || !events) {
    const auto body = co_await opened->read_all(how.max_answer_bytes);
    call->deadline.cancel();
    if (!body) co_return failed(body.failure());
    run.take(run.talk.on_decode_answer(attempt, opened->status(), *body));
    co_return co_await give_to_client(run);
  }
  bool first = true;
  for (;;) {
    const auto piece = co_await opened->read_some();
    if (!piece) co_return failed(piece.failure());
    run.piece_came = steady::now();
    run.take(piece->empty() ? run.talk.on_decode_end(attempt) : run.talk.on_decode_piece(attempt, *piece));
    if (first && run.talk.fetched()) {
      call->deadline.cancel();
      run.charge.fetched();
      first = false;
    }
    co_await give_to_client(run);
    if (piece->empty() || run.talk.over() || run.talk.attempt_number() != attempt) break;
  }
  call->deadline.cancel();
  if (run.talk.over()) co_await read_out(run, *opened, call);
}

}  // namespace infernex::proxy
