#include "actors/simulator/completion_call.hpp"

#include <utility>

#include <boost/asio/redirect_error.hpp>

namespace infernex::simulator {

completion_call::completion_call(http::asio::io_context& context, engine_loop& engine, const settings& values,
                                 completion_request request)
    : engine_(engine), values_(values), request_(std::move(request)), news_(context.get_executor()) {}

completion_call::~completion_call() { cancel(); }

std::optional<error> completion_call::start() {
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
                           .source = std::move(source)});
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
  if (running_ > 0) {
    for (std::size_t i = 0; i < answers_.size(); ++i) {
      if (!answers_[i].ended) engine_.abort(first_id_ + i);
    }
  }
  news_.cancel();
}

std::optional<finish_reason> completion_call::on_token(const token_output& output) {
  auto& one = answers_.at(output.id - first_id_);
  if (one.text.tokens() == 0) one.cached_tokens = output.cached_tokens;
  auto delta = one.text.push(output);
  one.unwritten.text += delta.text;
  one.unwritten.finish = delta.finish;
  one.unwritten.stop_string = std::move(delta.stop_string);
  if (delta.finish) {
    one.ended = true;
    --running_;
  }
  if (request_.stream || finished()) {
    changed_ = true;
    news_.cancel();
  }
  return delta.finish;
}

http::task<void> completion_call::wait() {
  if (!std::exchange(changed_, false) && !cancelled_) {
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
  for (bool last = false; !last;) {
    co_await call.wait();
    if (call.cancelled()) co_return;
    last = call.finished();
    auto events = call.take_events(writer);
    if (last && call.request().include_usage) events += writer.usage_event(call.counts());
    if (last) events += response_writer::end_event();
    if (!events.empty() && !co_await out.write(events)) co_return;
  }
  co_await out.end_stream();
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
  while (!call.finished() && !call.cancelled()) co_await call.wait();
  if (call.cancelled()) co_return;
  const auto answers = call.take_answers();
  co_await out.send(200, "application/json", writer.whole(answers, call.counts()), std::move(headers));
}

}  // namespace infernex::simulator
