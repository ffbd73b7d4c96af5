#include "actors/simulator/engine_life.hpp"

#include <random>
#include <utility>

#include "actors/runtime/log.hpp"
#include "actors/simulator/kv_give.hpp"

namespace infernex::simulator {

namespace {

/// In the shape of vLLM's: a UUID.
std::string drawn_engine_id() {
  static constexpr char digits[] = "0123456789abcdef";
  std::random_device random;
  std::string id;
  for (int i = 0; i < 32; ++i) {
    if (i == 8 || i == 12 || i == 16 || i == 20) id += '-';
    id += digits[random() & 15];
  }
  return id;
}

}  // namespace

engine_life::engine_life(settings values, metrics_registry& registry, engine_metrics& metrics, fault_book& faults,
                         std::function<void(const outage&)> on_outage)
    : values_(std::move(values)),
      registry_(registry),
      metrics_(metrics),
      faults_(faults),
      on_outage_(std::move(on_outage)),
      port_(values_.port) {}

engine_life::~engine_life() { stop(std::chrono::milliseconds(0)); }

std::optional<error> engine_life::start() {
  if (values_.kv_events.enabled) {
    auto opened = kv_publisher::open(values_.kv_events, values_.block_size, registry_);
    if (!opened) return opened.failure();
    publisher_ = *std::move(opened);
  }
  metrics_.begins();
  threads_ = std::make_unique<http::io_threads>(1);
  auto& worker = threads_->at(0);
  loop_ = std::make_unique<engine_loop>(worker.context(), values_, publisher_.get(), metrics_);
  const auto& kv = values_.kv_transfer;
  kv_place here{kv.engine_id.empty() ? drawn_engine_id() : kv.engine_id, kv.host.empty() ? values_.address : kv.host,
                kv.has_bootstrap() ? kv.bootstrap_port : kv.side_channel_port};
  transfer_ = std::make_unique<kv_transfer>(worker, values_, *loop_, faults_, std::move(here));
  if (auto failed = listen_for_peers()) return failed;
  const auto started =
      std::chrono::duration_cast<std::chrono::seconds>(std::chrono::system_clock::now().time_since_epoch());
  const auto ready_at = std::chrono::steady_clock::now() + values_.load_time;
  api_ = std::make_unique<engine_api>(engine_api{values_, *loop_, *transfer_, faults_, registry_, ready_at,
                                                 started.count(), [this] { return connections(); }, on_outage_, 0});
  if (auto failed = listen()) return failed;
  log::info("engine is serving", {{"instance", values_.instance},
                                  {"model", served_name(values_)},
                                  {"port", port_},
                                  {"kv_events", kv_endpoint()},
                                  {"kv_replay", replay_endpoint()},
                                  {"engine_id", transfer_->here().engine_id},
                                  {"kv_port", transfer_->here().port}});
  return std::nullopt;
}

std::optional<error> engine_life::listen_for_peers() {
  if (values_.kv_transfer.protocol == transfer_protocol::none) return std::nullopt;
  http::server_settings serving;
  serving.address = values_.address;
  serving.port = transfer_->here().port;
  auto listening = http::server::listen(
      *threads_, serving, [transfer = transfer_.get()](http::worker&, http::request& in, http::responder& out) {
        return handle_peer(*transfer, in, out);
      });
  if (!listening) return listening.failure();
  peers_ = *std::move(listening);
  transfer_->listens_on(peers_->port());
  return std::nullopt;
}

std::optional<error> engine_life::listen() {
  http::server_settings serving;
  serving.address = values_.address;
  serving.port = port_;
  auto listening = http::server::listen(*threads_, serving,
                                        [api = api_.get()](http::worker& on, http::request& in, http::responder& out) {
                                          return handle(*api, on, in, out);
                                        });
  if (!listening) return listening.failure();
  const std::lock_guard lock(listening_);
  server_ = *std::move(listening);
  port_ = server_->port();
  return std::nullopt;
}

void engine_life::stop_listening() {
  std::unique_lock lock(listening_);
  auto gone = std::move(server_);
  lock.unlock();
  gone.reset();
}

std::size_t engine_life::connections() {
  const std::lock_guard lock(listening_);
  return (server_ ? server_->open_connections() : 0) + (peers_ ? peers_->open_connections() : 0);
}

void engine_life::stop(std::chrono::milliseconds deadline) {
  if (server_) server_->drain(deadline);
  if (peers_) peers_->drain(std::chrono::milliseconds(0));
  if (threads_) threads_->stop();
  if (transfer_) transfer_->end();
  if (loop_) loop_->end();
  server_.reset();
  peers_.reset();
  threads_.reset();
  publisher_.reset();
}

}  // namespace infernex::simulator
