#include "actors/engine/kv_listener.hpp"

#include <pthread.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <optional>
#include <thread>
#include <utility>

#include <xxhash.h>
#include <zmq.hpp>

#include "actors/engine/kv_event_decoder.hpp"
#include "actors/engine/kv_sockets.hpp"
#include "actors/engine/wakeup.hpp"
#include "actors/runtime/log.hpp"

namespace infernex::engine {

namespace {

using steady = std::chrono::steady_clock;

/// A group is handed over when it has so many batches or tokens, and whenever the sockets are empty.
constexpr std::size_t max_group_batches = 64;
constexpr std::size_t max_group_tokens = 1 << 20;
/// After a failure, such as an endpoint that cannot be used.
constexpr std::chrono::milliseconds retry_pause{1'000};
/// Before a replay is tried again for which there was no permit.
constexpr std::chrono::milliseconds permit_pause{50};

/// What the listener and the credits it gave out share.
struct credit_line {
  wakeup awake;
  std::atomic<std::uint32_t> out{0};
};

std::shared_ptr<const void> take_credit(const std::shared_ptr<credit_line>& line) {
  line->out.fetch_add(1, std::memory_order_relaxed);
  return {line.get(), [line](const void*) {
            line->out.fetch_sub(1, std::memory_order_release);
            line->awake.wake();
          }};
}

}  // namespace

struct kv_listener::impl {
  impl(std::shared_ptr<zmq::context_t> zmq_context, listener_settings with, sink to)
      : context(std::move(zmq_context)),
        settings(std::move(with)),
        deliver(std::move(to)),
        state(settings.limits, !settings.replay_endpoint.empty()) {}

  // --- shared with other threads ---
  std::shared_ptr<zmq::context_t> context;
  listener_settings settings;
  sink deliver;
  std::shared_ptr<credit_line> credit = std::make_shared<credit_line>();
  std::atomic<bool> stop{false};
  std::atomic<std::uint64_t> wanted_generation{0};

  // --- of the thread ---
  source_state state;
  std::uint64_t generation = 0;
  bool reopen = false;
  std::optional<zmq::socket_t> live;
  struct running_replay {
    replay_permits::permit permit;
    zmq::socket_t socket;
  };
  std::optional<running_replay> replay;
  struct kept_batch {
    std::uint64_t sequence = 0;
    std::vector<std::uint8_t> payload;
  };
  std::optional<kept_batch> held;  // the live batch that waits for a replay
  event_batch group;
  std::size_t group_tokens = 0;
  std::optional<stream_state> reported;
  drop_counts dropped;
  form_counts forms;
  log::limiter bad_batches;
  log::limiter failures;
  std::thread thread;

  bool has_credit() const { return credit->out.load(std::memory_order_acquire) < settings.max_pending_groups; }

  fb::KvHealth health() const {
    if (!state.reads_live()) return fb::KvHealth::Replaying;
    if (state.partial()) return fb::KvHealth::Partial;
    return state.caught_up() ? fb::KvHealth::Live : fb::KvHealth::Replaying;
  }

  /// Hands over what has gathered, if it says anything new.
  void flush() {
    const auto now = state.state();
    if (group.batches.empty() && !group.clear_first && reported == now) return;
    reported = group.stream = now;
    group.health = health();
    group.generation = generation;
    group.engine_sequence = state.last_sequence();
    group.totals = state.totals();
    group.dropped = dropped;
    group.forms = forms;
    group.credit = take_credit(credit);
    deliver(std::make_shared<const event_batch>(std::move(group)));
    group = {};
    group_tokens = 0;
  }

  void forget() {
    group = {};
    group_tokens = 0;
    group.clear_first = true;
  }

  void complain(std::string_view what) {
    if (const auto repeated = bad_batches.admit())
      log::warn("bad KV events", {{"instance", settings.instance}, {"problem", what}, {"repeated", repeated}});
  }

  void apply(std::span<const std::uint8_t> payload) {
    auto batch = decode_kv_events(payload);
    if (!batch) {
      ++dropped[drop_reason::malformed_batch];
      state.on_damage();
      return complain(render(batch.failure()));
    }
    forms += batch->forms;
    if (!batch->first_problem.empty()) complain(batch->first_problem);
    if (batch->dropped[drop_reason::malformed_event] > 0) state.on_damage();
    for (const auto& event : batch->events)
      if (const auto* blocks = std::get_if<stored_blocks>(&event)) group_tokens += blocks->tokens.size();
    group.batches.push_back(*std::move(batch));
  }

  void act(batch_verdict verdict, const wire_batch& batch) {
    using v = batch_verdict;
    if (verdict == v::clear_and_apply || verdict == v::clear_and_drop || verdict == v::clear_and_hold) forget();
    if (verdict == v::apply || verdict == v::clear_and_apply) apply(batch.payload);
    if (verdict == v::hold || verdict == v::clear_and_hold)
      held = kept_batch{batch.sequence, {batch.payload.begin(), batch.payload.end()}};
    if (verdict == v::renew) reopen = true;
  }

  void on_live(const wire_batch& batch) {
    const auto fingerprint = XXH3_64bits(batch.payload.data(), batch.payload.size());
    act(state.on_live(batch.sequence, fingerprint, steady::now(), find_publisher(batch.payload)), batch);
  }

  void on_replayed(const wire_batch& batch) {
    if (batch.end) {
      replay.reset();
      if (state.on_replay_end(steady::now())) forget();
      return;
    }
    const auto fingerprint = XXH3_64bits(batch.payload.data(), batch.payload.size());
    act(state.on_replayed(batch.sequence, fingerprint, steady::now(), find_publisher(batch.payload)), batch);
  }

  bool group_full() const { return group.batches.size() >= max_group_batches || group_tokens >= max_group_tokens; }

  void read_live() {
    if (held && state.reads_live()) {
      const auto again = *std::exchange(held, std::nullopt);
      on_live({again.sequence, again.payload, false});
    }
    zmq_frames frames;
    while (live && !held && !reopen && state.reads_live() && !group_full() && frames.receive(*live)) {
      const auto parts = frames.view();
      if (const auto batch = parse_live(parts))
        on_live(*batch);
      else
        reject_frames(batch.failure());
    }
  }

  void read_replay() {
    zmq_frames frames;
    while (replay && !group_full() && frames.receive(replay->socket)) {
      const auto parts = frames.view();
      if (const auto batch = parse_replayed(parts))
        on_replayed(*batch);
      else
        reject_frames(batch.failure());
    }
  }

  void reject_frames(const error& problem) {
    ++dropped[drop_reason::malformed_frames];
    complain(render(problem));
  }

  void begin_anew() {
    generation = wanted_generation.load();
    replay.reset();
    live.reset();
    held.reset();
    group = {};
    group_tokens = 0;
    group.clear_first = std::exchange(reopen, false);  // else the actor has cleared by itself
    reported.reset();
    // The live connection first, so that nothing falls between it and the replay.
    live = open_live(*context, settings.events_endpoint, settings.topic);
    state.start(steady::now());
  }

  void begin_replay() {
    const auto now = steady::now();
    if (!state.wants_replay(now)) return;
    auto permit = settings.permits->take();
    if (!permit) return state.postpone_replay(now + permit_pause);
    const auto from = state.begin_replay(now);
    replay.emplace(running_replay{std::move(permit), open_replay(*context, settings.replay_endpoint, *from)});
  }

  /// Waits for something to do. Reads nothing while there is no credit.
  void wait() {
    std::array<zmq_pollitem_t, 3> items{};
    int count = 0;
    items[static_cast<std::size_t>(count++)] = {nullptr, credit->awake.fd(), ZMQ_POLLIN, 0};
    if (has_credit()) {
      if (live && !held && state.reads_live())
        items[static_cast<std::size_t>(count++)] = {live->handle(), 0, ZMQ_POLLIN, 0};
      if (replay) items[static_cast<std::size_t>(count++)] = {replay->socket.handle(), 0, ZMQ_POLLIN, 0};
    }
    constexpr std::chrono::milliseconds longest{60'000};
    const auto deadline = live && has_credit() ? state.next_deadline() : steady::time_point::max();
    const auto now = steady::now();
    auto pause = longest;
    if (deadline < now + longest)
      pause = std::max(std::chrono::ceil<std::chrono::milliseconds>(deadline - now), std::chrono::milliseconds(0));
    zmq::poll(items.data(), static_cast<std::size_t>(count), pause);
    credit->awake.reset();
  }

  void run_once() {
    if (!reopen) wait();
    if (stop) return;
    if (wanted_generation.load() != generation || reopen) begin_anew();
    if (!live || !has_credit()) return;
    read_replay();  // first: batches that wait in the socket are progress, not silence
    if (state.on_tick(steady::now())) replay.reset();
    begin_replay();
    read_live();
    flush();
  }

  void run() {
    while (!stop) {
      try {
        run_once();
      } catch (const zmq::error_t& problem) {
        if (problem.num() == ETERM || stop) return;
        if (problem.num() != EINTR) begin_anew_later("ZMQ", problem);
      } catch (const std::exception& problem) {
        // Such as memory that ran out over a batch: the other engines' agents live in the same process.
        begin_anew_later("KV events cannot be followed", problem);
      }
    }
  }

  void begin_anew_later(const char* what, const std::exception& problem) {
    replay.reset();
    live.reset();
    reopen = true;
    if (const auto repeated = failures.admit())
      log::error(what, {{"instance", settings.instance}, {"problem", problem.what()}, {"repeated", repeated}});
    std::array<zmq_pollitem_t, 1> items{{{nullptr, credit->awake.fd(), ZMQ_POLLIN, 0}}};
    ::zmq_poll(items.data(), 1, retry_pause.count());
  }
};

kv_listener::kv_listener(std::shared_ptr<zmq::context_t> context, listener_settings settings, sink deliver)
    : impl_(std::make_unique<impl>(std::move(context), std::move(settings), std::move(deliver))) {
  impl_->thread = std::thread([state = impl_.get()] { state->run(); });
  ::pthread_setname_np(impl_->thread.native_handle(), "kv-events");
}

kv_listener::~kv_listener() {
  impl_->stop = true;
  impl_->credit->awake.wake();
  impl_->thread.join();
}

void kv_listener::resync(std::uint64_t generation) {
  impl_->wanted_generation = generation;
  impl_->credit->awake.wake();
}

}  // namespace infernex::engine
