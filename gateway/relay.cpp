#include "gateway/relay.hpp"

#include <algorithm>

#include "gateway/error_message.hpp"
#include "gateway/headers.hpp"
#include "gateway/pair_relay.hpp"
#include "gateway/routing_headers.hpp"

namespace infernex::gateway {
namespace {

relayed done() { return {}; }
relayed failed(std::string_view why) { return {false, why, {}}; }
/// The engines are not to blame.
relayed failed_at_proxy(relayed how) {
  how.engine_failed = false;
  return how;
}
relayed instead(answer what) { return {false, {}, std::move(what)}; }

/// A call ended in an error before the client got anything.
relayed judge(const session& s, const error& problem, const candidate& to) {
  if (s.client_gone) return done();
  if (s.too_late || (problem.code == errc::timed_out && std::chrono::steady_clock::now() >= s.ends_at)) {
    return instead(too_slow(s.at.shared.how.timeout));
  }
  if (problem.code == errc::too_large) return instead(bad_answer(to.instance, story_of(problem.code)));
  // A time-out with time left was a connection that could not be made, or a stalled one: another may answer.
  return failed(story_of(problem.code));
}

http::fields answer_headers(const session& s, const http::exchange& from) {
  auto headers = to_client(from.headers());
  headers.push_back({"X-Request-Id", s.request_id});
  headers.push_back({"x-infernex-endpoint", header_line(s.instance)});
  headers.push_back({"x-infernex-decision", header_line(s.decision)});
  add_session_tokens(headers, s.at.headers(), s.instance);
  return headers;
}

http::task<relayed> relay_whole(session& s, http::exchange from, const candidate& to) {
  auto body = co_await from.read_all(s.at.shared.how.max_answer_bytes);
  if (!body) co_return judge(s, body.failure(), to);
  s.status = from.status();
  s.outcome = fb::Outcome::Completed;
  if (s.status == 200) s.used = find_usage(*body);
  const std::string type(http::find(from.headers(), "content-type"));
  s.deadline.cancel();
  if (!co_await s.out.send(s.status, type, *body, answer_headers(s, from))) s.client_gone = true;
  co_return done();
}

/// Ends a stream that has begun in an error the client can read, then breaks the connection, so that no
/// client takes the cut answer for a whole one.
http::task<void> break_off(session& s, const error& problem) {
  const bool slow = problem.code == errc::timed_out;
  s.outcome = slow ? fb::Outcome::TimedOut : fb::Outcome::EngineFailed;
  s.at.metrics.broken_streams.Increment();
  const auto message = "The stream ended early: engine " + s.instance + ' ' + std::string(story_of(problem.code)) + '.';
  const auto event =
      "data: " + http::openai_error(slow ? 504 : 502, message, slow ? "timeout" : "engine_failed") + "\n\n";
  co_await s.out.write(event);
  s.out.abort();
}

/// Passes events on as they come: the next piece is read only when the client has taken the last.
http::task<relayed> relay_stream(session& s, http::exchange from, const candidate& to, placed_request& place) {
  stream_scan scan;
  bool started = false;
  for (;;) {
    auto piece = co_await from.read_some();
    if (!piece && !started) co_return judge(s, piece.failure(), to);
    if (!piece) {
      if (!s.client_gone) co_await break_off(s, piece.failure());
      break;
    }
    const bool end = piece->empty();
    const auto events = end ? scan.rest() : scan.feed(*piece);
    if (!s.ttft && scan.first_token()) note_first_token(s, place);
    if (!started && (end || !events.empty())) {
      started = true;
      s.deadline.cancel();
      s.status = from.status();
      const std::string type(http::find(from.headers(), "content-type"));
      if (!co_await s.out.start_stream(s.status, type, answer_headers(s, from))) s.client_gone = true;
    }
    if (!events.empty() && !s.client_gone && !co_await s.out.write(events)) s.client_gone = true;
    if (s.client_gone) break;
    if (!end) continue;
    s.outcome = fb::Outcome::Completed;
    if (!co_await s.out.end_stream()) s.client_gone = true;
    break;
  }
  s.used = scan.last_usage();
  co_return done();
}

/// What one attempt is sent to: the engine, or the proxy of its group, which is told of the engines.
struct destination {
  std::string url;
  std::string prefill;
  std::string decode;
  bool proxy = false;
};

std::string address_of(const std::string& url) {
  const auto parsed = http::parse_url(url);
  return parsed ? parsed->at.host + ":" + std::to_string(parsed->at.port) : std::string{};
}

/// The decode engine can do all of it, only slower. Instead of a pair that is another attempt: what it takes says
/// nothing of the pair, and what was expected is cached by the other engine. False: SGLang's decode engines compute no
/// prompts.
bool leave_group(session& s, candidate& to, std::string_view who, std::string_view why) {
  const auto* engine = s.model->find(to.instance);
  if (engine && engine->kv_transfer && engine->kv_transfer->protocol == fb::KvProtocol::Sglang) return false;
  s.decision += "; " + std::string(who) + "PD group " + to.pd_group + ' ' + std::string(why) +
                ": the decode engine computes the prompt";
  if (to.pair()) {
    to.prefill_instance.clear();
    to.overlap_blocks = to.predicted_blocks = 0;
    ++s.attempt;
    s.expected_blocks.reset();
    s.by_prediction = false;
  }
  to.pd_group.clear();
  to.group_prefills = false;
  return true;
}

constexpr std::string_view its_proxy = "the proxy of ";
constexpr std::string_view needs_its_group = "computes no prompts itself, and its PD group's proxy cannot be asked";

/// Nothing: it can be reached by its group only, and that not now.
std::optional<destination> destination_of(session& s, candidate& to) {
  if (!to.by_group()) return destination{to.url, {}, {}, false};
  const auto proxy = s.at.proxy_of(to.pd_group);
  if (proxy.empty()) {
    if (!leave_group(s, to, its_proxy, "is not on the bus")) return std::nullopt;
    return destination{to.url, {}, {}, false};
  }
  if (to.group_prefills) {
    // By whom is not known here, nor what that engine caches or how long it takes.
    s.attempt = std::max(s.attempt, 2U);
    s.expected_blocks.reset();
    s.by_prediction = false;
  }
  const std::string prefill = to.pair() ? address_of(to.prefill_url) : to.group_prefills ? "" : "none";
  return destination{proxy, prefill, address_of(to.url), true};
}

/// What the client says of engines does not count beside what was decided.
void name_engines(http::fields& headers, const destination& to) {
  drop_header(headers, "x-prefiller-host-port");
  if (!to.prefill.empty()) headers.push_back({"x-prefiller-host-port", to.prefill});
  set_header(headers, {"x-decoder-host-port", to.decode});
}

/// The proxy has tried what it could: its story is told, be it in part.
http::task<relayed> refused_by_proxy(session& s, http::exchange from, const candidate& to) {
  constexpr std::uint64_t most_read = 16 << 10;
  constexpr std::size_t most_told = 1'200;
  const auto status = from.status();
  const auto body = co_await from.read_all(most_read);
  if (s.given_up()) co_return failed_at_proxy(judge(s, body ? error{errc::timed_out, {}} : body.failure(), to));
  s.pair_story = "by the proxy of PD group " + to.pd_group + ", which answered " + std::to_string(status);
  if (const auto told = body ? error_message(*body) : std::string(); !told.empty())
    s.pair_story += ": " + header_line(told, most_told);
  co_return failed_at_proxy(failed(s.pair_story));
}

}  // namespace

std::string upstream_target(const session& s, std::string_view upstream_path) {
  std::string target(upstream_path);
  if (const auto query = s.in.target.find('?'); query != std::string::npos) target += s.in.target.substr(query);
  return target;
}

void note_first_token(session& s, placed_request& place) {
  place.prefilled();
  s.ttft = std::chrono::steady_clock::now() - s.in.received_at;
  s.at.metrics.ttft.Observe(std::chrono::duration<double>(*s.ttft).count());
}

http::task<relayed> relay(session& s, candidate to, std::string_view upstream_path) {
  if (to.by_group() && s.at.pairs) {
    auto by_pairs = co_await relay_pair(s, to, upstream_path);
    if (by_pairs.unusable.empty()) co_return std::move(by_pairs.how);
    if (!leave_group(s, to, {}, by_pairs.unusable)) co_return failed_at_proxy(failed(needs_its_group));
  }
  const auto found = destination_of(s, to);
  if (!found) co_return failed_at_proxy(failed(needs_its_group));
  const auto& way = *found;
  const auto base = http::parse_url(way.url);
  if (!base) co_return failed("announced a URL that cannot be used");
  std::optional<placed_request> place(std::in_place, s.at, *s.model, s.where, to);
  s.instance = to.instance;
  s.prefill_instance = to.prefill_instance;
  s.prefilled_somewhere = to.group_prefills;
  s.met = place->met();
  s.met_at_prefill = place->met_at_prefill();

  const auto target = base->path + upstream_target(s, upstream_path);
  const auto left = std::chrono::ceil<std::chrono::milliseconds>(s.ends_at - std::chrono::steady_clock::now());
  http::call_options options;
  options.connect_timeout = std::min(s.at.shared.how.connect_timeout, left);
  options.response_timeout = left;
  options.idle_timeout = s.body.stream ? s.at.shared.how.stream_idle_timeout : left;
  options.cancel = &s.upstream;
  auto headers = to_engine(s.in.headers, s.request_id, to.data_parallel_rank);
  if (way.proxy) name_engines(headers, way);
  const http::outgoing what{"POST", target, std::move(headers), s.in.body};
  auto opened = co_await s.at.worker.upstream().open(base->at, what, options);
  if (!opened && way.proxy && opened.failure().code == errc::unreachable && !s.given_up()) {
    place.reset();
    if (!leave_group(s, to, its_proxy, "cannot be reached")) co_return failed_at_proxy(failed(needs_its_group));
    co_return co_await relay(s, std::move(to), upstream_path);
  }
  // It does not hold one of the two (any more, or not yet).
  if (opened && way.proxy && opened->status() == 403) {
    place.reset();
    if (!leave_group(s, to, its_proxy, "does not know the engines")) co_return failed_at_proxy(failed(needs_its_group));
    co_return co_await relay(s, std::move(to), upstream_path);
  }
  if (!opened && way.proxy) co_return failed_at_proxy(judge(s, opened.failure(), to));
  if (!opened) co_return judge(s, opened.failure(), to);
  const auto status = opened->status();
  if (worth_retry_status(status)) {
    if (way.proxy) co_return co_await refused_by_proxy(s, *std::move(opened), to);
    co_return failed(status == 503 ? "answered 503" : status == 502 ? "answered 502" : "answered 504");
  }
  if (!way.proxy) s.at.backoff.succeeded(to.instance);
  if (http::find(opened->headers(), "content-type").starts_with("text/event-stream")) {
    co_return co_await relay_stream(s, *std::move(opened), to, *place);
  }
  co_return co_await relay_whole(s, *std::move(opened), to);
}

}  // namespace infernex::gateway
