#include "actors/simulator/actor.hpp"

#include <mutex>
#include <utility>

#include "actors/runtime/http/server.hpp"
#include "actors/runtime/log.hpp"
#include "actors/simulator/api.hpp"
#include "actors/simulator/engine_loop.hpp"
#include "actors/simulator/kv_publisher.hpp"
#include "actors/simulator/metrics.hpp"

namespace infernex::simulator {

namespace {

class engine_process final : public simulated_engine {
 public:
  engine_process(metrics_registry& registry, const settings& values)
      : values_(values), registry_(registry), metrics_(registry, values_) {}

  ~engine_process() override { stop(std::chrono::milliseconds(0)); }

  std::optional<error> start() {
    if (values_.kv_events.enabled) {
      auto opened = kv_publisher::open(values_.kv_events, values_.block_size, registry_);
      if (!opened) return opened.failure();
      publisher_ = *std::move(opened);
    }
    threads_ = std::make_unique<http::io_threads>(1);
    auto& worker = threads_->at(0);
    loop_ = std::make_unique<engine_loop>(worker.context(), values_, publisher_.get(), metrics_);
    const auto started =
        std::chrono::duration_cast<std::chrono::seconds>(std::chrono::system_clock::now().time_since_epoch());
    api_ = std::make_unique<engine_api>(
        engine_api{values_, *loop_, registry_, std::chrono::steady_clock::now() + values_.load_time, started.count()});
    http::server_settings serving;
    serving.address = values_.address;
    serving.port = values_.port;
    auto listening = http::server::listen(
        *threads_, serving, [api = api_.get()](http::worker& on, http::request& in, http::responder& out) {
          return handle(*api, on, in, out);
        });
    if (!listening) return listening.failure();
    server_ = *std::move(listening);
    log::info("engine is serving", {{"instance", values_.instance},
                                    {"model", served_name(values_)},
                                    {"port", server_->port()},
                                    {"kv_events", kv_endpoint()},
                                    {"kv_replay", replay_endpoint()}});
    return std::nullopt;
  }

  void stop(std::chrono::milliseconds deadline) override {
    const std::lock_guard lock(stopping_);
    if (server_) server_->drain(deadline);
    if (threads_) threads_->stop();
    if (loop_) loop_->end();
    server_.reset();
    threads_.reset();
    publisher_.reset();
  }

  std::uint16_t port() const override { return server_ ? server_->port() : 0; }
  std::string kv_endpoint() const override { return publisher_ ? publisher_->endpoint() : std::string(); }
  std::string replay_endpoint() const override { return publisher_ ? publisher_->replay_endpoint() : std::string(); }

 private:
  const settings values_;
  metrics_registry& registry_;
  engine_metrics metrics_;
  std::unique_ptr<kv_publisher> publisher_;
  // Before the threads: requests that are cut off abort their sequences when the threads' frames go.
  std::unique_ptr<engine_loop> loop_;
  std::unique_ptr<engine_api> api_;
  std::unique_ptr<http::io_threads> threads_;
  std::unique_ptr<http::server> server_;
  std::mutex stopping_;
};

}  // namespace

result<std::unique_ptr<simulated_engine>> start(metrics_registry& metrics, const settings& values) {
  if (auto wrong = check(values)) return *std::move(wrong);
  auto engine = std::make_unique<engine_process>(metrics, values);
  if (auto failed = engine->start()) return *std::move(failed);
  return std::unique_ptr<simulated_engine>(std::move(engine));
}

}  // namespace infernex::simulator
