#include <thread>
#include <vector>

#include "actors/proxy/hand.hpp"
#include "actors/proxy/proxy.hpp"
#include "actors/runtime/http/own_url.hpp"
#include "actors/runtime/log.hpp"

namespace infernex::proxy {
namespace {

class running_proxy final : public proxy_role {
 public:
  running_proxy(const runtime& process, const settings& how) : shared_(process, how) {
    const auto threads = how.threads ? how.threads : std::max(1U, std::thread::hardware_concurrency());
    threads_ = std::make_unique<http::io_threads>(threads);
    for (unsigned i = 0; i < threads_->size(); ++i) hands_.push_back(std::make_unique<hand>(shared_, threads_->at(i)));
  }
  ~running_proxy() override {
    stop({});
    // Coroutines that a hard stop has left waiting end here; they use the hands.
    server_.reset();
    threads_.reset();
  }

  error open() {
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
    shared_.facts->own_url =
        shared_.how.url.empty() ? http::own_url(shared_.how.address, server_->port()) : shared_.how.url;
    shared_.facts->listens.store(true, std::memory_order_release);
    child_spec spec{"proxy", [this](caf::actor_system&) {
                      auto actor = spawn_proxy_actor(shared_.process, shared_.how, shared_.facts);
                      shared_.actor.set(actor);
                      return caf::actor_cast<caf::strong_actor_ptr>(actor);
                    }};
    supervisor_ = caf::actor_cast<caf::strong_actor_ptr>(spawn_supervisor(
        shared_.process.system, shared_.process.metrics, {std::move(spec)}, {}, shared_.process.give_up));
    threads_->at(0).spawn(probe_listed(*hands_[0]));
    log::info("proxy listens", {{"address", shared_.how.address},
                                {"port", server_->port()},
                                {"group", shared_.how.group.name},
                                {"url", shared_.facts->own_url}});
    return {};
  }

  std::uint16_t port() const override { return server_->port(); }

  void stop(std::chrono::milliseconds deadline) override {
    if (stopped_) return;
    stopped_ = true;
    if (server_ && !server_->drain(deadline)) log::warn("requests were cut off by the shutdown");
    threads_->stop();
    constexpr std::chrono::milliseconds actor_deadline{2'000};
    stop_and_wait(shared_.process.system, std::exchange(supervisor_, nullptr), actor_deadline);
    const auto actor = caf::actor_cast<caf::strong_actor_ptr>(shared_.actor.get());
    shared_.actor.set({});
    stop_and_wait(shared_.process.system, actor, actor_deadline);
  }

 private:
  proxy_shared shared_;
  std::unique_ptr<http::io_threads> threads_;
  std::vector<std::unique_ptr<hand>> hands_;
  std::unique_ptr<http::server> server_;
  caf::strong_actor_ptr supervisor_;
  bool stopped_ = false;
};

}  // namespace

result<std::unique_ptr<proxy_role>> start(const runtime& process, const settings& how) {
  auto made = std::make_unique<running_proxy>(process, how);
  if (auto problem = made->open(); problem.code != errc::none) return problem;
  return std::unique_ptr<proxy_role>(std::move(made));
}

}  // namespace infernex::proxy
