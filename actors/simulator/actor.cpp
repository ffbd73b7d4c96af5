#include "actors/simulator/actor.hpp"

#include <condition_variable>
#include <cstdlib>
#include <mutex>
#include <thread>
#include <utility>

#include "actors/runtime/log.hpp"
#include "actors/simulator/engine_life.hpp"
#include "actors/simulator/metrics.hpp"

namespace infernex::simulator {

namespace {

constexpr std::chrono::milliseconds port_pause{10};
/// As a process that was killed.
constexpr int exit_code = 137;

/// The engine through its lives. A thread of its own ends and starts them, since no I/O thread can end itself.
class engine_process final : public simulated_engine {
 public:
  engine_process(metrics_registry& registry, const settings& values)
      : values_(values), registry_(registry), metrics_(registry, values_) {}

  ~engine_process() override { stop(std::chrono::milliseconds(0)); }

  std::optional<error> start() {
    life_ = make_life();
    if (auto failed = life_->start()) return failed;
    // Later lives listen where the first did.
    values_.port = life_->port();
    values_.kv_events.endpoint = life_->kv_endpoint();
    values_.kv_events.replay_endpoint = life_->replay_endpoint();
    auto& kv = values_.kv_transfer;
    (kv.has_bootstrap() ? kv.bootstrap_port : kv.side_channel_port) = life_->kv_port();
    keeper_ = std::thread([this] { keep(); });
    return std::nullopt;
  }

  void stop(std::chrono::milliseconds deadline) override {
    {
      const std::lock_guard lock(mutex_);
      ending_ = true;
    }
    told_.notify_all();
    if (keeper_.joinable()) keeper_.join();
    if (life_) life_->stop(deadline);
    life_.reset();
  }

  std::uint16_t port() const override { return values_.port; }
  std::uint16_t kv_port() const override {
    const auto& kv = values_.kv_transfer;
    return kv.has_bootstrap() ? kv.bootstrap_port : kv.side_channel_port;
  }
  std::string kv_endpoint() const override { return values_.kv_events.enabled ? values_.kv_events.endpoint : ""; }
  std::string replay_endpoint() const override {
    return values_.kv_events.enabled ? values_.kv_events.replay_endpoint : "";
  }

 private:
  std::unique_ptr<engine_life> make_life() {
    return std::make_unique<engine_life>(values_, registry_, metrics_, faults_,
                                         [this](const outage& what) { begin(what); });
  }

  /// On an I/O thread.
  void begin(const outage& what) {
    if (what.what == outage::kind::exit) std::_Exit(exit_code);
    {
      const std::lock_guard lock(mutex_);
      if (!next_) next_ = what;
    }
    told_.notify_all();
  }

  void keep() {
    std::unique_lock lock(mutex_);
    for (;;) {
      told_.wait(lock, [this] { return ending_ || next_; });
      if (ending_) return;
      const auto now = *next_;
      lock.unlock();
      log::warn("engine is down on command", {{"instance", values_.instance}, {"ms", now.down.count()}});
      const bool dies = now.what == outage::kind::restart;
      if (dies) {
        life_.reset();
      } else {
        life_->stop_listening();
      }
      lock.lock();
      told_.wait_for(lock, now.down, [this] { return ending_; });
      next_.reset();
      while (!ending_) {
        lock.unlock();
        if (dies) life_ = make_life();
        const auto failed = dies ? life_->start() : life_->listen_again();
        lock.lock();
        if (!failed) break;
        // Somebody has our port for the moment.
        told_.wait_for(lock, port_pause, [this] { return ending_; });
      }
    }
  }

  /// Changed by start() alone.
  settings values_;
  metrics_registry& registry_;
  engine_metrics metrics_;
  /// Of the life's I/O thread; faults that are armed outlive a restart.
  fault_book faults_;
  /// The keeper's, while it runs.
  std::unique_ptr<engine_life> life_;
  std::thread keeper_;
  std::mutex mutex_;
  std::condition_variable told_;
  std::optional<outage> next_;
  bool ending_ = false;
};

}  // namespace

result<std::unique_ptr<simulated_engine>> start(metrics_registry& metrics, const settings& values) {
  if (auto wrong = check(values)) return *std::move(wrong);
  auto engine = std::make_unique<engine_process>(metrics, values);
  if (auto failed = engine->start()) return *std::move(failed);
  return std::unique_ptr<simulated_engine>(std::move(engine));
}

}  // namespace infernex::simulator
