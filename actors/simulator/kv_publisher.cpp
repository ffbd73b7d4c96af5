#include "actors/simulator/kv_publisher.hpp"

#include <sys/eventfd.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <chrono>
#include <deque>
#include <limits>
#include <mutex>
#include <system_error>
#include <thread>
#include <utility>

#include <zmq.hpp>

#include "actors/runtime/log.hpp"
#include "actors/simulator/kv_event_codec.hpp"

namespace infernex::simulator {

namespace {

struct batch {
  std::uint64_t sequence = 0;
  double timestamp = 0;
  std::vector<kv_event> events;
};

double seconds_since_1970() {
  return std::chrono::duration<double>(std::chrono::system_clock::now().time_since_epoch()).count();
}

int socket_limit(std::uint64_t messages) {
  return static_cast<int>(std::min<std::uint64_t>(messages, std::numeric_limits<int>::max()));
}

/// ZMQ spells "a free port" with a star.
std::string bind_address(std::string endpoint) {
  if (endpoint.starts_with("tcp://") && endpoint.ends_with(":0")) endpoint.replace(endpoint.size() - 1, 1, "*");
  return endpoint;
}

/// False if the peer's queue is full or the peer is gone: ZMQ drops then.
bool send_frames(zmq::socket_t& socket, const std::vector<std::string>& frames) {
  for (std::size_t i = 0; i < frames.size(); ++i) {
    const auto more = i + 1 < frames.size() ? zmq::send_flags::sndmore : zmq::send_flags::none;
    if (!socket.send(zmq::buffer(frames[i]), more | zmq::send_flags::dontwait)) return false;
  }
  return true;
}

/// Longest request taken note of; further frames are read and forgotten.
constexpr std::size_t most_frames = 4;

std::vector<std::string> receive_frames(zmq::socket_t& socket) {
  std::vector<std::string> frames;
  zmq::message_t frame;
  while (socket.recv(frame, zmq::recv_flags::dontwait)) {
    if (frames.size() < most_frames) frames.push_back(frame.to_string());
    if (!frame.more()) break;
  }
  return frames;
}

}  // namespace

struct kv_publisher::impl {
  impl(const kv_event_settings& settings, std::uint32_t tokens_a_block, metrics_registry& metrics)
      : how(settings),
        block_size(tokens_a_block),
        published(metrics.counter("infernex_sim_kv_batches_total", "KV event batches published")),
        dropped(metrics.counter("infernex_sim_kv_batches_dropped_total", "KV event batches that found the queue full")),
        replays(metrics.counter("infernex_sim_kv_replays_total", "Replay requests answered")),
        wake(::eventfd(0, EFD_NONBLOCK | EFD_CLOEXEC)) {
    if (wake < 0) throw std::system_error(errno, std::generic_category(), "eventfd");
  }
  ~impl() { ::close(wake); }

  void bind() {
    out.set(zmq::sockopt::sndhwm, socket_limit(how.hwm));
    out.set(zmq::sockopt::linger, 0);
    out.bind(bind_address(how.endpoint));
    endpoint = out.get(zmq::sockopt::last_endpoint);
    if (how.replay_endpoint.empty()) return;
    replay.emplace(context, zmq::socket_type::router);
    // Room for one whole replay; a client that asks for more before it has read that loses the rest.
    replay->set(zmq::sockopt::sndhwm, socket_limit(std::uint64_t{how.buffer_steps} + 16));
    replay->set(zmq::sockopt::linger, 0);
    replay->bind(bind_address(how.replay_endpoint));
    replay_endpoint = replay->get(zmq::sockopt::last_endpoint);
  }

  void run() {
    try {
      while (!ending) {
        std::array<zmq::pollitem_t, 2> items{{{nullptr, wake, ZMQ_POLLIN, 0}, {nullptr, -1, ZMQ_POLLIN, 0}}};
        if (replay) items[1].socket = replay->handle();
        zmq::poll(items.data(), replay ? 2 : 1, std::chrono::milliseconds(-1));
        if (items[0].revents != 0) publish_queued();
        if (replay && items[1].revents != 0) serve_replay();
      }
    } catch (const zmq::error_t& problem) {
      log::error("kv event publisher ended", {{"problem", problem.what()}});
    }
  }

  void publish_queued() {
    std::uint64_t rung = 0;
    [[maybe_unused]] const auto got = ::read(wake, &rung, sizeof rung);
    std::deque<batch> taken;
    {
      const std::lock_guard lock(mutex);
      taken.swap(queue);
    }
    for (const auto& each : taken) {
      auto payload = encode_batch(each.events, {each.timestamp, 0, block_size, how.encoding});
      send_frames(out, {how.topic, sequence_frame(each.sequence), payload});
      published.Increment();
      history.emplace_back(each.sequence, std::move(payload));
      if (history.size() > how.buffer_steps) history.pop_front();
    }
  }

  void serve_replay() {
    const auto request = receive_frames(*replay);
    const auto start = request.size() == 3 && request[1].empty() ? parse_sequence_frame(request[2]) : std::nullopt;
    if (!start) {
      static log::limiter bad_requests;
      if (const auto repeated = bad_requests.admit()) {
        log::warn("invalid kv replay request", {{"frames", request.size()}, {"repeated", repeated}});
      }
      return;
    }
    const auto answer = [this, &request](std::vector<std::string> frames) {
      frames.insert(frames.begin(), request[0]);
      return send_frames(*replay, frames);
    };
    for (const auto& [sequence, payload] : history) {
      if (sequence >= *start && !answer(replay_reply(how.framing, how.topic, sequence, payload))) return;
    }
    answer(replay_end(how.framing));
    replays.Increment();
  }

  kv_event_settings how;
  std::uint32_t block_size;
  prometheus::Counter& published;
  prometheus::Counter& dropped;
  prometheus::Counter& replays;

  // Of the thread.
  zmq::context_t context;
  zmq::socket_t out{context, zmq::socket_type::pub};
  std::optional<zmq::socket_t> replay;
  std::deque<std::pair<std::uint64_t, std::string>> history;
  std::string endpoint;
  std::string replay_endpoint;

  // Between the threads.
  int wake;
  std::atomic<bool> ending{false};
  std::mutex mutex;
  std::deque<batch> queue;

  // Of publish()'s caller.
  std::uint64_t next_sequence = 0;
  std::thread thread;
};

kv_publisher::kv_publisher(std::unique_ptr<impl> state) : impl_(std::move(state)) {
  impl_->thread = std::thread([state = impl_.get()] { state->run(); });
}

result<std::unique_ptr<kv_publisher>> kv_publisher::open(const kv_event_settings& how, std::uint32_t block_size,
                                                         metrics_registry& metrics) {
  try {
    auto state = std::make_unique<impl>(how, block_size, metrics);
    state->bind();
    return std::unique_ptr<kv_publisher>(new kv_publisher(std::move(state)));
  } catch (const std::exception& problem) {
    return error{errc::system_error, "kv events on " + how.endpoint +
                                         (how.replay_endpoint.empty() ? "" : " and " + how.replay_endpoint) + ": " +
                                         problem.what()};
  }
}

kv_publisher::~kv_publisher() {
  impl_->ending = true;
  const std::uint64_t one = 1;
  [[maybe_unused]] const auto rung = ::write(impl_->wake, &one, sizeof one);
  impl_->thread.join();
}

void kv_publisher::publish(std::vector<kv_event> events) {
  if (events.empty()) return;
  batch made{impl_->next_sequence++, seconds_since_1970(), std::move(events)};
  {
    const std::lock_guard lock(impl_->mutex);
    if (impl_->queue.size() >= impl_->how.hwm) return impl_->dropped.Increment();
    impl_->queue.push_back(std::move(made));
  }
  const std::uint64_t one = 1;
  [[maybe_unused]] const auto rung = ::write(impl_->wake, &one, sizeof one);
}

const std::string& kv_publisher::endpoint() const { return impl_->endpoint; }
const std::string& kv_publisher::replay_endpoint() const { return impl_->replay_endpoint; }

}  // namespace infernex::simulator
