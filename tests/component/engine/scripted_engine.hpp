#pragma once

#include <array>
#include <atomic>
#include <mutex>
#include <optional>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include <zmq.hpp>
#include <zmq_addon.hpp>

#include "actors/engine/stream_frames.hpp"
#include "actors/runtime/http/server.hpp"
#include "tests/support/nats_server.hpp"
#include "tests/unit/engine/kv_batches.hpp"

namespace infernex::test {

/// What a scripted engine answers over HTTP. Shared with its coroutines; every member is thread-safe.
struct http_script {
  std::atomic<unsigned> health{200};
  std::atomic<double> process_start{0};
  std::atomic<std::uint32_t> running{0};
};

inline http::task<void> answer(std::shared_ptr<http_script> script, http::request& in, http::responder& out) {
  if (in.path == "/health") {
    co_await out.send(script->health, "text/plain", "");
  } else if (in.path == "/metrics") {
    std::string page = "vllm:num_requests_running{engine=\"0\"} " + std::to_string(script->running) + "\n";
    page += "vllm:kv_cache_usage_perc{engine=\"0\"} 0.5\n";
    if (script->process_start > 0) page += "process_start_time_seconds " + std::to_string(script->process_start) + "\n";
    co_await out.send(200, "text/plain", page);
  } else if (in.path == "/v1/models") {
    co_await out.send(200, "application/json", R"({"data":[{"id":"org/model","max_model_len":4096}]})");
  } else {
    co_await out.send(404, "text/plain", "");
  }
}

/// An engine whose every batch a test decides: an HTTP server, a PUB socket and a replay ROUTER as vLLM has
/// them. It can leave live batches out, forget its history, die and come back on the same ports.
class scripted_engine {
 public:
  explicit scripted_engine(bool topic_in_replay = true) : topic_in_replay_(topic_in_replay) { start(); }
  ~scripted_engine() { kill(); }

  std::string url() const { return "http://127.0.0.1:" + std::to_string(http_port_); }
  std::string events() const { return "tcp://127.0.0.1:" + std::to_string(events_port_); }
  std::string replay() const { return "tcp://127.0.0.1:" + std::to_string(replay_port_); }
  http_script& http() { return *script_; }

  /// Publishes a batch; `lost`: only the history has it, as when the PUB socket drops it.
  void publish(std::vector<std::uint8_t> payload, bool lost = false) {
    const std::lock_guard lock(guard_);
    const auto sequence = next_++;
    if (!lost) {
      const auto number = engine::replay_request(sequence);
      const std::array<zmq::const_buffer, 3> frames{zmq::buffer(topic_), zmq::buffer(number), zmq::buffer(payload)};
      zmq::send_multipart(*live_, frames);
    }
    history_.emplace_back(sequence, std::move(payload));
  }
  /// The oldest `count` batches can no longer be replayed.
  void forget(std::size_t count) {
    const std::lock_guard lock(guard_);
    history_.erase(history_.begin(), history_.begin() + static_cast<std::ptrdiff_t>(count));
  }
  std::size_t replays() const { return replays_; }

  /// As SIGKILL does: every connection breaks, nobody listens any more.
  void kill() {
    if (!server_) return;
    server_.reset();
    threads_.reset();
    stop_ = true;
    replayer_.join();
    live_.reset();
    // Ends when every socket is closed, so that the ports are free again.
    context_.reset();
  }
  /// Comes back with an empty cache and a new sequence.
  void start() {
    script_ = std::make_shared<http_script>();
    threads_ = std::make_unique<http::io_threads>(1);
    http::server_settings where;
    where.port = http_port_;
    auto listening = http::server::listen(
        *threads_, where,
        [script = script_](http::worker&, http::request& in, http::responder& out) { return answer(script, in, out); });
    if (!listening) throw std::runtime_error(render(listening.failure()));
    server_ = *std::move(listening);
    next_ = 0;
    history_.clear();
    context_.emplace();
    live_.emplace(*context_, zmq::socket_type::pub);
    live_->set(zmq::sockopt::linger, 0);
    live_->bind(events());
    stop_ = false;
    replayer_ = std::thread([this] { serve_replays(); });
  }

 private:
  void serve_replays() {
    zmq::socket_t router(*context_, zmq::socket_type::router);
    router.set(zmq::sockopt::linger, 0);
    router.bind(replay());
    while (!stop_) {
      std::array<zmq_pollitem_t, 1> items{{{router.handle(), 0, ZMQ_POLLIN, 0}}};
      zmq::poll(items.data(), items.size(), std::chrono::milliseconds(20));
      std::vector<zmq::message_t> request;
      if (!zmq::recv_multipart(router, std::back_inserter(request), zmq::recv_flags::dontwait)) continue;
      if (request.size() != 3 || request[1].size() != 0 || request[2].size() != 8) continue;
      ++replays_;
      const auto sequence = engine::parse_live(std::array<engine::frame, 3>{
          engine::frame{}, engine::frame{request[2].data<std::uint8_t>(), 8}, engine::frame{}});
      const std::lock_guard lock(guard_);
      for (const auto& [number, payload] : history_)
        if (number >= sequence->sequence) reply(router, request[0], number, payload);
      reply(router, request[0], ~std::uint64_t{0}, {});
    }
  }

  void reply(zmq::socket_t& router, const zmq::message_t& to, std::uint64_t sequence,
             const std::vector<std::uint8_t>& payload) {
    const auto number = engine::replay_request(sequence);
    std::vector<zmq::const_buffer> frames{zmq::buffer(to.data(), to.size()), zmq::const_buffer()};
    if (topic_in_replay_) frames.push_back(zmq::buffer(topic_));
    frames.push_back(zmq::buffer(number));
    frames.push_back(zmq::buffer(payload));
    zmq::send_multipart(router, frames);
  }

  bool topic_in_replay_;
  std::string topic_ = "kv@test";
  std::uint16_t http_port_ = free_port();
  std::uint16_t events_port_ = free_port();
  std::uint16_t replay_port_ = free_port();
  std::shared_ptr<http_script> script_;
  std::unique_ptr<http::io_threads> threads_;
  std::unique_ptr<http::server> server_;
  std::optional<zmq::context_t> context_;
  std::optional<zmq::socket_t> live_;
  std::thread replayer_;
  std::atomic<bool> stop_{false};
  std::atomic<std::size_t> replays_{0};
  std::mutex guard_;
  std::uint64_t next_ = 0;
  std::vector<std::pair<std::uint64_t, std::vector<std::uint8_t>>> history_;
};

}  // namespace infernex::test
