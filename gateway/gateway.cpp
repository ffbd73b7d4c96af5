#include "gateway/gateway.hpp"

#include <algorithm>
#include <thread>
#include <vector>

#include "actors/router/picker_config.hpp"
#include "actors/runtime/config_watch.hpp"
#include "actors/runtime/http/own_url.hpp"
#include "actors/runtime/log.hpp"
#include "gateway/endpoints.hpp"
#include "gateway/route_by_bus.hpp"
#include "gateway/route_embedded.hpp"

namespace infernex::gateway {
namespace {

settings with_threads(settings how) {
  if (how.threads == 0) how.threads = std::max(1U, std::thread::hardware_concurrency());
  return how;
}

class running_gateway final : public gateway_role {
 public:
  running_gateway(const runtime& process, const settings& how, const std::shared_ptr<indexer::index_set>& index,
                  std::shared_ptr<pair_exchanges> pairs)
      : shared_{with_threads(how), process, nullptr, {}, "gateway/" + process.process, {}, {}, {}, {}},
        threads_(std::make_unique<http::io_threads>(shared_.how.threads)) {
    const bool decides = how.router == router_mode::embedded;
    const auto policy = decides ? router::spec_of(how.policy) : router::scheduler_spec{};
    publish_headers(decides ? &policy : nullptr);
    shared_.facts = std::make_shared<gateway_facts>(how, process.metrics, shared_.source, process.epoch);
    shared_.facts->pairs = std::move(pairs);
    for (unsigned i = 0; i < threads_->size(); ++i) {
      auto& worker = threads_->at(i);
      auto route = how.router == router_mode::embedded ? make_route_embedded(shared_, worker, index)
                                                       : make_route_by_bus(shared_, worker);
      hands_.push_back(std::make_unique<hand>(shared_, worker, std::move(route)));
    }
    // Routers on the bus have a policy of their own.
    if (const auto& from = how.policy.source; from && how.router == router_mode::embedded)
      watch_.emplace(process.metrics, config_watch::settings{"gateway", from->file, from->stamp, from->remarks},
                     [this, file = from->file] { return reload(file); });
  }
  ~running_gateway() override {
    stop({});
    // Coroutines that a hard stop has left waiting end here, with their threads' contexts; they use the hands.
    server_.reset();
    threads_.reset();
  }

  error open() {
    child_spec spec{"gateway", [this](caf::actor_system&) {
                      auto actor = spawn_gateway_actor(shared_.process, shared_.facts, shared_.how.life_interval);
                      shared_.actor.set(actor);
                      return caf::actor_cast<caf::strong_actor_ptr>(actor);
                    }};
    supervisor_ = caf::actor_cast<caf::strong_actor_ptr>(spawn_supervisor(
        shared_.process.system, shared_.process.metrics, {std::move(spec)}, {}, shared_.process.give_up));
    http::server_settings server;
    server.address = shared_.how.address;
    server.port = shared_.how.port;
    server.max_body_bytes = shared_.how.max_body_bytes;
    auto listening =
        http::server::listen(*threads_, server, [this](http::worker& on, http::request& in, http::responder& out) {
          return dispatch(*hands_[on.index()], in, out);
        });
    if (!listening) return listening.failure();
    server_ = *std::move(listening);
    if (const auto& pairs = shared_.facts->pairs)
      pairs->reached_at(shared_.how.url.empty() ? http::own_url(shared_.how.address, server_->port())
                                                : shared_.how.url);
    log::info("gateway listens", {{"address", shared_.how.address}, {"port", server_->port()}});
    return {};
  }

  std::uint16_t port() const override { return server_->port(); }

  void stop(std::chrono::milliseconds deadline) override {
    if (stopped_) return;
    stopped_ = true;
    watch_.reset();
    if (server_ && !server_->drain(deadline)) log::warn("requests were cut off by the shutdown");
    threads_->stop();
    constexpr std::chrono::milliseconds actor_deadline{2'000};
    stop_and_wait(shared_.process.system, supervisor_, actor_deadline);
    const auto actor = caf::actor_cast<caf::strong_actor_ptr>(shared_.actor.get());
    const bool ended = stop_and_wait(shared_.process.system, actor, actor_deadline);
    shared_.actor.set({});
    for (auto& hand : hands_) hand->close();
    if (!ended) return;
    // Nobody else touches the facts now: tell the routers the last of them.
    const auto now = std::chrono::steady_clock::now();
    take_events(*shared_.facts, now);
    shared_.facts->requests.end_all(now);
    publish_life(*shared_.facts, shared_.process.messages, true, now);
  }

 private:
  void publish_headers(const router::scheduler_spec* policy) {
    shared_.headers.publish(std::make_shared<const header_plan>(plan_headers(shared_.how.routing_headers, policy)));
  }
  config_watch::outcome reload(const std::string& file) {
    auto read = router::load_picker_config(file);
    if (read.spec) publish_headers(&*read.spec);
    if (read.spec) shared_.newest_policy.publish(std::make_shared<const router::scheduler_spec>(*std::move(read.spec)));
    return {read.problems(), std::move(read.remarks)};
  }

  gateway_shared shared_;
  std::unique_ptr<http::io_threads> threads_;
  std::vector<std::unique_ptr<hand>> hands_;
  std::unique_ptr<http::server> server_;
  caf::strong_actor_ptr supervisor_;
  std::optional<config_watch> watch_;
  bool stopped_ = false;
};

}  // namespace

result<std::unique_ptr<gateway_role>> start(const runtime& process, const settings& how,
                                            std::shared_ptr<indexer::index_set> index,
                                            std::shared_ptr<pair_exchanges> pairs) {
  if (how.router == router_mode::embedded && !index) {
    return error{errc::invalid_config, "router: embedded needs an indexer in the same process"};
  }
  if ((how.pd == pd_mode::embedded) != (pairs != nullptr)) {
    return error{errc::invalid_config, "pd: embedded needs pair exchanges, and nothing else does"};
  }
  auto made = std::make_unique<running_gateway>(process, how, std::move(index), std::move(pairs));
  if (auto problem = made->open(); problem.code != errc::none) return problem;
  return std::unique_ptr<gateway_role>(std::move(made));
}

}  // namespace infernex::gateway
