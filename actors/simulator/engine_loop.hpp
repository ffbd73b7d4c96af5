#pragma once

#include <chrono>
#include <functional>
#include <optional>
#include <unordered_map>
#include <vector>

#include <boost/asio/basic_waitable_timer.hpp>

#include "actors/runtime/http/types.hpp"
#include "actors/simulator/kv_publisher.hpp"
#include "actors/simulator/metrics.hpp"
#include "actors/simulator/step_model.hpp"

namespace infernex::simulator {

using steady_timer =
    http::asio::basic_waitable_timer<std::chrono::steady_clock, http::asio::wait_traits<std::chrono::steady_clock>,
                                     http::executor>;

/// Whoever asked for a sequence.
class token_sink {
 public:
  virtual ~token_sink() = default;
  /// The next token. Returns how the sequence ends with it, if it does: the token's own finish, or that of
  /// a stop string, which aborts the sequence.
  virtual std::optional<finish_reason> on_token(const token_output& output) = 0;
  /// The engine ran out of memory and gives the sequence back instead of starting it over; it has been aborted.
  virtual void on_recomputed(sequence_id id) = 0;
  /// Nothing can run for want of memory: what is held for a sequence that has not begun is to be released.
  virtual void on_memory_short() = 0;
};

/// Drives the step model in real time: lets each step's milliseconds (divided by the speed) pass on a timer,
/// then hands out its tokens and events. Lives on one I/O thread, which is also that of all its callers, so
/// there are no locks. A slow reader never holds a step up: sinks only take note.
class engine_loop {
 public:
  /// `events` may be null.
  engine_loop(http::asio::io_context& context, const settings& engine, kv_publisher* events, engine_metrics& metrics);

  /// Starts all or none; their ids are the returned one and those that follow it, in order. `sink` must
  /// live until every sequence has ended or been aborted. Errors: invalid_request, overloaded.
  result<sequence_id> start(std::vector<sequence_request> requests, token_sink& sink);
  void abort(sequence_id id);
  void reset_prefix_cache();

  /// Ids for reserve().
  sequence_id new_id() { return next_id_++; }
  /// See step_model; the pointers hold until the next call.
  const block_hold* reserve(sequence_id id, std::vector<token_id> prompt, std::string salt);
  void fill(sequence_id reserved);
  const block_hold* held(sequence_id id) const { return model_.held(id); }
  void release(sequence_id held);
  /// Is called, on this thread, whenever memory may have become free.
  void on_room(std::function<void()> told) { room_ = std::move(told); }
  /// Requests that wait for KV from elsewhere count as waiting.
  void waiting_for_kv(std::uint32_t requests);

  engine_load load() const;
  const prefix_cache& cache() const { return model_.cache(); }
  /// How long a step of so many new prompt tokens takes now.
  std::chrono::duration<double, std::milli> prefill_time(std::uint32_t tokens) const;
  /// 2: twice as slow from the next step on.
  void slow_down(double factor) { slowness_ = factor; }

  /// Lets go of the io_context, whose threads have ended. Afterwards only abort() may be called.
  void end() {
    timer_.reset();
    room_ = nullptr;
  }

 private:
  using clock = std::chrono::steady_clock;
  struct active {
    token_sink* sink = nullptr;
    std::uint32_t prompt_tokens = 0;
    clock::time_point arrived;
    std::optional<clock::time_point> last_token;
  };

  void wake();
  void begin_step(bool continues);
  void end_step();
  void deliver(const token_output& output, clock::time_point now);
  void publish(std::vector<kv_event> events);

  void give_back(const std::vector<sequence_id>& preempted);
  double pace() const { return values_.speed / slowness_; }

  const settings& values_;
  double slowness_ = 1;
  step_model model_;
  kv_publisher* events_;
  engine_metrics& metrics_;
  std::optional<steady_timer> timer_;
  std::function<void()> room_;
  std::uint32_t waiting_for_kv_ = 0;
  std::unordered_map<sequence_id, active> active_;
  sequence_id next_id_ = 1;
  bool stepping_ = false;
  bool woken_ = false;
  /// When the step at hand ends, or the last one ended.
  clock::time_point due_;
};

}  // namespace infernex::simulator
