#include "actors/proxy/exchange.hpp"

#include <array>
#include <random>

#include "actors/proxy/exchange_run.hpp"
#include "actors/runtime/http/end_to_end.hpp"

namespace infernex::proxy {
namespace {

/// Accept-Encoding: a compressed answer could not be read on its way. The rank is one engine's, not that of both legs.
constexpr std::array<std::string_view, 8> not_to_engine = {
    "accept-encoding",     "content-length",      "expect", "host", "x-request-id", "x-prefiller-host-port",
    "x-decoder-host-port", "x-data-parallel-rank"};

/// While there is no pair.
constexpr std::chrono::milliseconds look_for_pair_again{100};

std::uint64_t random_bits() {
  thread_local std::mt19937_64 generator{(std::uint64_t{std::random_device{}()} << 32) | std::random_device{}()};
  return generator();
}

void watch(const run_pointer& run, http::responder& out) {
  const std::weak_ptr<exchange_run> weak = run;
  out.on_client_gone([weak] {
    const auto alive = weak.lock();
    if (!alive) return;
    alive->client_gone = true;
    alive->take(alive->talk.on_client_gone());
    alive->wake_up();
  });
  run->deadline.expires_at(run->received_at + run->plan.how->timeout);
  run->deadline.async_wait([weak](const boost::system::error_code& problem) {
    const auto alive = problem ? nullptr : weak.lock();
    // A stream that has its first token has no deadline any more but that between two pieces.
    if (!alive || alive->talk.first_token()) return;
    const auto had = alive->pair_since ? steady::now() - *alive->pair_since : steady::duration{0};
    alive->take(alive->talk.on_deadline(2 * had >= alive->plan.how->timeout));
    alive->wake_up();
  });
}

void unregister(exchange_run& run) {
  if (!run.registered.empty()) run.plan.meta->remove(std::exchange(run.registered, {}));
}

void answer_calls(exchange_run& run, unsigned status, const std::string& body) {
  for (const auto& call : std::exchange(run.calls, {})) call->answer(status, body);
}

/// Calls for the prefill of `attempt`, which is about to begin, come here from now on.
void expect_calls(exchange_run& run, const std::string& id, unsigned attempt) {
  run.registered = id;
  run.plan.meta->add(id, run.on, [weak = run.weak_from_this(), attempt](std::shared_ptr<metaserver_call> call) {
    const auto alive = weak.lock();
    // It may have been on its way while the attempt ended, and another began.
    if (!alive || alive->talk.over() || alive->talk.attempt_number() != attempt)
      return call->answer(404, "{\"error\":\"the request has ended, or was begun anew\"}");
    // Its three tries, for each of its prompts.
    if (alive->calls.size() >= 4UL * max_prompts) return call->answer(429, "{\"error\":\"too many calls\"}");
    alive->calls.push_back(call);
    alive->take(alive->talk.on_metaserver(attempt, call->request_id, call->params));
    alive->wake_up();
  });
}

http::task<void> find_pair(exchange_run& run, const action::choose_pair& wish) {
  unregister(run);
  run.charge = {};
  if (wish.wait) {
    const auto since = steady::now();
    co_await run.wake.wait(since + look_for_pair_again);
    run.waited_for_pair += steady::now() - since;
  }
  if (run.talk.over()) co_return;
  auto chosen = co_await run.plan.pairs->choose(wish);
  if (run.talk.over()) co_return;
  if (const auto* none = std::get_if<no_pair>(&chosen))
    co_return run.take(run.talk.on_no_pair(none->reason, run.waited_for_pair < run.plan.how->pair_wait));
  auto& to = std::get<chosen_pair>(chosen);
  run.charge = std::move(to.charge);
  run.plan.pairs->on_taken(to.pair);
  auto by = to.pair.prefill ? make_protocol(to.protocol) : nullptr;
  auto id = run.new_id();
  if (by && by->asks_metaserver()) {
    if (!run.plan.meta) co_return run.take(run.talk.on_no_pair("its protocol needs a metaserver, and there is none"));
    expect_calls(run, id, run.talk.attempt_number() + 1);
  }
  run.pair_since = steady::now();
  std::string known;
  if (to.pair.prefill && to.protocol == fb::KvProtocol::Mooncake)
    known = run.plan.bootstraps->find(to.pair.prefill->address, to.pair.prefill->life(), steady::now());
  run.take(run.talk.on_pair(std::move(to.pair), std::move(by), std::move(id), random_bits() >> 1,
                            run.plan.metaserver_url, std::move(known)));
}

http::task<void> drive(exchange_run& run) {
  run.take(run.talk.start());
  for (;;) {
    co_await give_to_client(run);
    if (!run.waiting.empty()) {
      const auto next = std::move(run.waiting.front());
      run.waiting.pop_front();
      if (const auto* wish = std::get_if<action::choose_pair>(&next)) co_await find_pair(run, *wish);
      if (std::get_if<action::query_bootstrap>(&next)) co_await query_bootstrap(run);
    } else if (run.talk.over()) {
      co_return;
    } else if (run.decode) {
      co_await decode_leg(run);
    } else {
      co_await run.wake.wait(steady::time_point::max());
    }
  }
}

exchange_result sum_up(exchange_run& run) {
  exchange_result r;
  r.how = run.client_gone ? outcome::client_gone
          : run.refused   ? outcome::refused
          : run.failed    ? outcome::failed
                          : outcome::answered;
  r.status = run.status != 0 ? run.status : 499;
  r.ttft = run.ttft;
  r.retries = run.talk.retries();
  r.migrations = run.talk.migrations();
  r.prefilled_locally = run.talk.attempt_number() > 0 && run.talk.prefilled_locally();
  r.story = run.talk.story();
  r.pair = run.talk.present().pair;
  auto& m = *run.plan.metrics;
  m.requests(r.how).Increment();
  m.retries.Increment(r.retries);
  m.migrations.Increment(r.migrations);
  m.recomputed.Increment(run.talk.recomputes());
  if (r.prefilled_locally) m.local_prefills.Increment();
  return r;
}

}  // namespace

exchange_run::exchange_run(exchange_plan p, http::worker& w, http::request& in, http::responder& way_back)
    : plan(std::move(p)),
      on(w),
      headers(http::end_to_end(in.headers, not_to_engine)),
      talk(plan.how->tries, plan.facts, in.body),
      out(&way_back),
      received_at(in.received_at),
      wake(w.context()),
      deadline(w.context().get_executor()) {
  if (plan.request_id.empty()) plan.request_id = new_id();
}

std::string exchange_run::new_id() const {
  static constexpr char hex[] = "0123456789abcdef";
  std::string id;
  for (const auto bits : {random_bits(), random_bits()}) {
    for (int shift = 60; shift >= 0; shift -= 4) id += hex[(bits >> shift) & 15];
  }
  return id;
}

http::fields exchange_run::headers_for(const engine_ref& to, const outgoing_leg& what, std::string id) const {
  auto all = headers;
  const auto set = [&all](std::string_view name, std::string value) {
    std::erase_if(all, [name](const auto& f) { return http::same_name(f.name, name); });
    all.push_back({std::string(name), std::move(value)});
  };
  set("X-Request-Id", std::move(id));
  // As vLLM's API server reads it.
  if (to.rank) set("X-data-parallel-rank", std::to_string(*to.rank));
  for (const auto& [name, value] : what.headers) set(name, value);
  return all;
}

void exchange_run::take(actions todo) {
  for (auto& one : todo) {
    if (auto* s = std::get_if<action::send>(&one)) {
      if (s->to == leg::decode) {
        decode = std::move(s->what);
      } else {
        prefill_call = std::make_shared<leg_call>(on);
        const auto& at = talk.present();
        on.spawn(prefill_leg(shared_from_this(), prefill_call, talk.attempt_number(), *at.pair.prefill, at.id,
                             std::move(s->what)));
      }
    } else if (const auto* c = std::get_if<action::cancel>(&one)) {
      if (c->which == leg::decode) decode.reset();
      const auto& call = c->which == leg::prefill ? prefill_call : decode_call;
      if (call) call->cancel.request();
    } else if (const auto* m = std::get_if<action::answer_metaserver>(&one)) {
      answer_calls(*this, m->status, m->body);
    } else if (auto* r = std::get_if<action::release>(&one)) {
      plan.metrics->releases.Increment();
      on.spawn(release_leg(shared_from_this(), std::move(*r)));
    } else if (const auto* p = std::get_if<action::report>(&one)) {
      plan.pairs->report(*p);
    } else if (const auto* f = std::get_if<action::forget_bootstrap>(&one)) {
      plan.bootstraps->forget(f->address);
    } else {
      waiting.push_back(std::move(one));
    }
  }
}

http::task<exchange_result> run_exchange(exchange_plan plan, http::worker& on, http::request& in,
                                         http::responder& out) {
  const auto run = std::make_shared<exchange_run>(std::move(plan), on, in, out);
  watch(run, out);
  co_await drive(*run);
  out.on_client_gone({});
  unregister(*run);
  answer_calls(*run, 404, "{\"error\":\"the request has ended\"}");
  run->deadline.cancel();
  run->charge = {};
  run->out = nullptr;
  co_return sum_up(*run);
}

}  // namespace infernex::proxy
