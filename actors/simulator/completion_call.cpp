#include "actors/simulator/completion_call.hpp"

#include <utility>

#include <boost/asio/redirect_error.hpp>

#include "actors/simulator/kv_give.hpp"

namespace infernex::simulator {

refusal refusal_of(const error& failed) {
  if (failed.code == errc::overloaded) return {429, "Too many requests are waiting for this engine.", {}};
  return {400, "The request does not fit into this engine.", {}};
}

completion_call::completion_call(kv_transfer& transfer, const settings& values, completion_request request,
                                 std::string id, std::optional<fault_rule> fault)
    : transfer_(transfer),
      engine_(transfer.loop()),
      values_(values),
      id_(std::move(id)),
      kv_(transfer.on().context()),
      fault_(fault),
      request_(std::move(request)),
      news_(transfer.on().context().get_executor()) {}

completion_call::~completion_call() { cancel(); }

std::optional<error> completion_call::start() {
  if (takes()) return std::nullopt;
  return begin(std::vector<kv_taken>(request_.prompts.size()));
}

http::task<void> completion_call::arrive() {
  if (fault_ && fault_->when == fault_moment::prefill && fault_->kind != fault_kind::recomputed) {
    const auto half = takes() ? std::chrono::duration<double, std::milli>(0)
                              : engine_.prefill_time(static_cast<std::uint32_t>(request_.prompts[0].size())) / 2;
    doomed_ = co_await kv_.pass_until(arrived_ + std::chrono::duration_cast<kv_transfer::clock::duration>(half));
    co_return;
  }
  if (!takes()) co_return;
  std::vector<kv_wanted> wanted;
  for (std::size_t p = 0; p < request_.prompts.size(); ++p)
    wanted.push_back({transfer_of(p), name_of(p), request_.prompts[p]});
  const auto taken = co_await take_all_kv(transfer_, kv_, std::move(wanted), request_.cache_salt);
  if (taken) {
    for (const auto& one : *taken) kv_held_.push_back(one.held);
  }
  if (cancelled_) co_return release_kv();
  if (!taken) {
    // vLLM's words of a request whose KV could not be loaded.
    failure_ = refusal{500, "Internal server error: the KV transfer failed: " + render(taken.failure()), {}};
    co_return;
  }
  if (const auto failed = begin(*taken)) {
    release_kv();
    failure_ = refusal_of(*failed);
  }
}

http::task<void> completion_call::hand_over() {
  if (!gives()) co_return;
  // All of them, though one fails: each ends its lease.
  for (std::size_t p = 0; p < request_.prompts.size() && transfers(p); ++p) {
    const auto tokens = static_cast<std::uint32_t>(request_.prompts[p].size());
    const auto* reader = p < readers_.size() ? readers_[p].get() : nullptr;
    const auto failed = co_await hand_over_kv(transfer_, kv_, transfer_of(p), reader, tokens, arrived_);
    if (failed.code != errc::none) failure_ = refusal{500, "The KV could not be handed over: " + render(failed), {}};
  }
}

std::string completion_call::name_of(std::size_t prompt) const {
  return request_.chat ? id_ : id_ + '-' + std::to_string(prompt);
}

void completion_call::release_kv(std::size_t prompt) {
  if (prompt >= kv_held_.size()) return;
  if (const auto held = std::exchange(kv_held_[prompt], 0); held != 0) engine_.release(held);
}

void completion_call::release_kv() {
  for (std::size_t p = 0; p < kv_held_.size(); ++p) release_kv(p);
}

std::optional<error> completion_call::begin(const std::vector<kv_taken>& taken) {
  std::vector<sequence_request> sequences;
  for (std::size_t p = 0; p < request_.prompts.size(); ++p) {
    for (std::uint32_t i = 0; i < request_.n; ++i) {
      const auto& prompt = request_.prompts[p];
      // The answers of one prompt differ; the first is what a request for one would get.
      auto source = values_.mode == generation_mode::echo
                        ? generator::echo(*encode(request_.echo_texts[p]))
                        : generator::random(request_.seed.value_or(values_.seed) + i, values_.model, prompt,
                                            values_.eos_probability);
      sequences.push_back({.id = 0,
                           .prompt = prompt,
                           .max_tokens = request_.max_tokens[p],
                           .min_tokens = request_.min_tokens,
                           .ignore_eos = request_.ignore_eos,
                           .salt = request_.cache_salt,
                           .source = std::move(source),
                           .hold = gives() && transfers(p) && i == 0,
                           .remote_tokens = taken[p].tokens});
      answer_state state{choice({request_.stops, request_.keep_stop, request_.min_tokens}), {}, 0, false, false};
      if (request_.echo) state.unwritten.text = request_.echo_texts[p];
      answers_.push_back(std::move(state));
    }
  }
  const auto first = engine_.start(std::move(sequences), *this);
  if (!first) return first.failure();
  first_id_ = *first;
  running_ = answers_.size();
  return std::nullopt;
}

void completion_call::cancel() {
  if (std::exchange(cancelled_, true)) return;
  kv_.cancel();
  release_kv();
  if (running_ > 0) {
    for (std::size_t i = 0; i < answers_.size(); ++i) {
      if (!answers_[i].ended) engine_.abort(first_id_ + i);
    }
  }
  news_.cancel();
}

void completion_call::tell() {
  if (!request_.stream && !finished() && !doomed_) return;
  changed_ = true;
  news_.cancel();
}

void completion_call::give_back(answer_state& one) {
  auto last = one.text.end("recomputed");
  one.unwritten.text += last.text;
  one.unwritten.finish = last.finish;
  one.unwritten.stop_string = std::move(last.stop_string);
  one.ended = true;
  --running_;
  tell();
}

void completion_call::on_recomputed(sequence_id id) {
  release_kv((id - first_id_) / request_.n);
  give_back(answers_.at(id - first_id_));
}

std::optional<finish_reason> completion_call::on_token(const token_output& output) {
  const auto index = output.id - first_id_;
  const auto prompt = index / request_.n;
  release_kv(prompt);
  auto& one = answers_.at(index);
  const bool offers = output.finish == finish_reason::length && gives() && transfers(prompt) && index % request_.n == 0;
  if (fault_ && output.id == first_id_ && one.text.tokens() >= fault_->after_tokens) {
    if (offers) engine_.release(output.id);
    if (fault_->kind == fault_kind::recomputed) {
      give_back(one);
    } else {
      one.ended = doomed_ = true;
      tell();
    }
    return finish_reason::stop;
  }
  if (one.text.tokens() == 0) one.cached_tokens = output.cached_tokens;
  auto delta = one.text.push(output);
  one.unwritten.text += delta.text;
  one.unwritten.finish = delta.finish;
  one.unwritten.stop_string = std::move(delta.stop_string);
  if (delta.finish) {
    one.ended = true;
    --running_;
  }
  if (offers) {
    if (delta.finish == finish_reason::length) {
      const auto tokens = static_cast<std::uint32_t>(request_.prompts[prompt].size());
      readers_.resize(request_.prompts.size());
      readers_[prompt] = std::make_unique<awaited_entry>(transfer_.readers(), transfer_of(prompt).key);
      kv_transfer_params_ = transfer_.offer(transfer_of(prompt), name_of(prompt), output.id, tokens, output.token);
    } else {
      engine_.release(output.id);  // a stop string has ended it
    }
  }
  tell();
  return delta.finish;
}

http::task<void> completion_call::wait() {
  if (!std::exchange(changed_, false) && !cancelled_ && !failure_ && !doomed_) {
    news_.expires_at(std::chrono::steady_clock::time_point::max());
    boost::system::error_code woken;
    co_await news_.async_wait(http::asio::redirect_error(http::use_task, woken));
    changed_ = false;
  }
}

std::string completion_call::take_events(const response_writer& writer) {
  std::string events;
  for (std::uint32_t i = 0; i < answers_.size(); ++i) {
    auto& one = answers_[i];
    if (one.unwritten.text.empty() && !one.unwritten.finish) continue;
    if (request_.chat && !std::exchange(one.opened, true)) events += writer.role_event(i);
    events += writer.event(i, std::exchange(one.unwritten, {}));
  }
  return events;
}

std::vector<answer> completion_call::take_answers() {
  std::vector<answer> answers;
  for (auto& one : answers_) {
    answers.push_back({std::move(one.unwritten.text), one.unwritten.finish.value_or(finish_reason::stop),
                       std::move(one.unwritten.stop_string)});
  }
  return answers;
}

usage completion_call::counts() const {
  usage all;
  for (std::size_t i = 0; i < answers_.size(); ++i) {
    all.completion_tokens += answers_[i].text.tokens();
    if (i % request_.n != 0) continue;
    all.prompt_tokens += static_cast<std::uint32_t>(request_.prompts[i / request_.n].size());
    all.cached_tokens += answers_[i].cached_tokens;
  }
  return all;
}

namespace {

http::task<void> answer_streaming(completion_call& call, const response_writer& writer, http::responder& out,
                                  http::fields headers) {
  if (!co_await out.start_stream(200, "text/event-stream; charset=utf-8", std::move(headers))) co_return;
  co_await call.arrive();
  for (bool last = false; !last;) {
    co_await call.wait();
    if (call.cancelled()) break;
    last = call.finished();
    auto events = call.take_events(writer);
    if (last && !call.failure()) co_await call.hand_over();
    if (call.failure()) {
      events += response_writer::error_event(*call.failure());
    } else if (last && call.request().include_usage) {
      events += writer.usage_event(call.counts());
    }
    if (last) events += response_writer::end_event();
    if (!events.empty() && !co_await out.write(events)) co_return;
    if (call.doom()) co_return;
  }
  if (call.cancelled()) {
    co_await call.hand_over();
  } else {
    co_await out.end_stream();
  }
}

}  // namespace

http::task<void> answer_completion(completion_call& call, const response_writer& writer, http::responder& out) {
  const auto& id = writer.id();
  http::fields headers{{"X-Request-Id", id.substr(id.find('-') + 1)}};
  out.on_client_gone([&call] { call.cancel(); });
  if (call.request().stream) {
    co_await answer_streaming(call, writer, out, std::move(headers));
    co_return;
  }
  co_await call.arrive();
  while (!call.finished() && !call.cancelled() && !call.doom()) co_await call.wait();
  if (!call.failure() && !call.doom()) co_await call.hand_over();
  if (call.cancelled() || call.doom()) co_return;
  if (call.failure()) {
    const auto body = render(*call.failure());
    co_await out.send(call.failure()->status, "application/json", body, std::move(headers));
    co_return;
  }
  const auto answers = call.take_answers();
  const auto body = writer.whole(answers, call.counts(), call.kv_transfer_params());
  co_await out.send(200, "application/json", body, std::move(headers));
}

}  // namespace infernex::simulator
