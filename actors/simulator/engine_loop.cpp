#include "actors/simulator/engine_loop.hpp"

#include <algorithm>
#include <random>
#include <utility>

#include <boost/asio/post.hpp>

namespace infernex::simulator {

namespace {

/// A step starts when the one before was due, not when the thread noticed, so that rates are right; but
/// only so much lateness is made up for.
constexpr std::chrono::milliseconds catch_up{50};

std::uint64_t random_seed() {
  std::random_device device;
  return std::uint64_t{device()} << 32 | device();
}

}  // namespace

engine_loop::engine_loop(http::asio::io_context& context, const settings& engine, kv_publisher* events,
                         engine_metrics& metrics)
    : values_(engine),
      model_(engine, random_seed()),
      events_(events),
      metrics_(metrics),
      timer_(std::in_place, context.get_executor()) {
  metrics_.load(load());
}

engine_load engine_loop::load() const {
  auto now = model_.load();
  now.waiting += waiting_for_kv_;
  return now;
}

void engine_loop::waiting_for_kv(std::uint32_t requests) {
  waiting_for_kv_ = requests;
  metrics_.load(load());
}

std::chrono::duration<double, std::milli> engine_loop::prefill_time(std::uint32_t tokens) const {
  return std::chrono::duration<double, std::milli>(
      unloaded_milliseconds(values_.costs, values_.max_num_batched_tokens, tokens) / pace());
}

const block_hold* engine_loop::reserve(sequence_id id, std::vector<token_id> prompt, std::string salt) {
  const auto* made = model_.reserve(id, std::move(prompt), std::move(salt));
  publish(model_.take_events());
  metrics_.load(load());
  return made;
}

void engine_loop::fill(sequence_id reserved) {
  model_.fill(reserved);
  publish(model_.take_events());
}

void engine_loop::release(sequence_id held) {
  model_.release(held);
  metrics_.load(load());
  wake();
  if (room_) room_();
}

result<sequence_id> engine_loop::start(std::vector<sequence_request> requests, token_sink& sink) {
  const auto first = next_id_;
  const auto now = clock::now();
  for (auto& request : requests) {
    request.id = next_id_;
    const auto prompt_tokens = static_cast<std::uint32_t>(request.prompt.size());
    if (const auto failed = model_.add(std::move(request)); failed != errc::none) {
      for (auto id = first; id < next_id_; ++id) {
        model_.abort(id);
        active_.erase(id);
      }
      return failed;
    }
    active_.emplace(next_id_++, active{&sink, prompt_tokens, now, std::nullopt});
  }
  metrics_.load(load());
  wake();
  return first;
}

void engine_loop::abort(sequence_id id) {
  const auto found = active_.find(id);
  if (found == active_.end()) return;
  metrics_.ended(end_reason::abort, clock::now() - found->second.arrived);
  active_.erase(found);
  model_.abort(id);
  metrics_.load(load());
  wake();
  if (room_) room_();
}

void engine_loop::reset_prefix_cache() {
  model_.reset_prefix_cache();
  publish(model_.take_events());
  metrics_.load(load());
}

void engine_loop::wake() {
  if (stepping_ || !timer_ || std::exchange(woken_, true)) return;
  // Posted, so that whatever arrives in the same moment runs in the same step.
  http::asio::post(timer_->get_executor(), [this] {
    woken_ = false;
    if (!stepping_) begin_step(false);
  });
}

void engine_loop::begin_step(bool continues) {
  const auto plan = model_.begin_step();
  if (values_.kv_transfer.gives_back()) give_back(model_.preempted());
  metrics_.load(load());
  if (!plan) return;
  if (plan->prefill_tokens == 0 && plan->decoding == 0) {
    // What waits finds no memory, and nothing runs whose end would free some: release() or abort() wakes us.
    publish(model_.end_step().events);
    for (auto& [id, each] : active_) each.sink->on_memory_short();
    return;
  }
  stepping_ = true;
  const auto now = clock::now();
  const std::chrono::duration<double, std::milli> takes(plan->milliseconds / pace());
  const auto from = continues ? std::max(due_, now - catch_up) : now;
  due_ = from + std::chrono::duration_cast<clock::duration>(takes);
  timer_->expires_at(due_);
  timer_->async_wait([this](const boost::system::error_code& failed) {
    if (!failed) end_step();
  });
}

void engine_loop::end_step() {
  stepping_ = false;
  auto output = model_.end_step();
  publish(std::move(output.events));
  const auto now = clock::now();
  for (const auto& each : output.tokens) deliver(each, now);
  begin_step(true);
  if (room_) room_();
}

void engine_loop::give_back(const std::vector<sequence_id>& preempted) {
  for (const auto id : preempted) {
    const auto found = active_.find(id);
    if (found == active_.end()) continue;
    auto* sink = found->second.sink;
    metrics_.ended(end_reason::stop, clock::now() - found->second.arrived);
    active_.erase(found);
    model_.abort(id);
    sink->on_recomputed(id);
  }
}

void engine_loop::deliver(const token_output& output, clock::time_point now) {
  const auto found = active_.find(output.id);
  if (found == active_.end()) return;
  auto& one = found->second;
  if (one.last_token) {
    metrics_.next_token(now - *one.last_token);
  } else {
    metrics_.first_token(one.prompt_tokens, now - one.arrived);
  }
  one.last_token = now;
  const auto finish = one.sink->on_token(output);
  if (!finish) return;
  metrics_.ended(finish == finish_reason::stop ? end_reason::stop : end_reason::length, now - one.arrived);
  if (!output.finish) model_.abort(output.id);
  active_.erase(found);
}

void engine_loop::publish(std::vector<kv_event> events) {
  if (events_) events_->publish(std::move(events));
}

}  // namespace infernex::simulator
