#include "actors/indexer/http_api.hpp"
#include "actors/runtime/log.hpp"
#include "actors/runtime/supervisor.hpp"

namespace infernex::indexer {
namespace {

class running_indexer final : public role {
 public:
  running_indexer(runtime& process, const settings& how, std::shared_ptr<index_set> indexes)
      : process_(process), facts_(std::make_shared<indexer_facts>(process, how, std::move(indexes))) {
    child_spec spec{"indexer", [this, how](caf::actor_system&) {
                      auto actor = spawn_indexer_actor(process_, how, facts_);
                      actor_.set(actor);
                      return caf::actor_cast<caf::strong_actor_ptr>(actor);
                    }};
    supervisor_ = caf::actor_cast<caf::strong_actor_ptr>(
        spawn_supervisor(process.system, process.metrics, {std::move(spec)}, {}, process.give_up));
  }
  ~running_indexer() override { stop(std::chrono::seconds(2)); }

  error serve(const settings& how, registrar engines) {
    if (!how.admin_port) return {};
    threads_ = std::make_unique<http::io_threads>(1);
    http::server_settings server;
    server.address = how.admin_address;
    server.port = *how.admin_port;
    server.max_body_bytes = how.max_body_bytes;
    auto at = std::make_shared<api_context>(
        facts_, process_.metrics, [&connection = process_.messages] { return connection.connected(); }, how,
        std::move(engines));
    auto listening = http::server::listen(
        *threads_, server,
        [at](http::worker& worker, http::request& in, http::responder& out) { return serve_api(at, worker, in, out); });
    if (!listening) return listening.failure();
    server_ = *std::move(listening);
    log::info("indexer listens", {{"address", how.admin_address}, {"port", server_->port()}});
    return {};
  }

  void stop(std::chrono::milliseconds deadline) override {
    if (!supervisor_) return;
    if (server_) server_->drain(deadline);
    if (threads_) threads_->stop();
    const auto actor = caf::actor_cast<caf::strong_actor_ptr>(actor_.get());
    actor_.set({});
    stop_and_wait(process_.system, std::exchange(supervisor_, nullptr), deadline);
    stop_and_wait(process_.system, actor, deadline);
    server_.reset();
    threads_.reset();
  }

 private:
  runtime process_;
  std::shared_ptr<indexer_facts> facts_;
  current_actor<indexer_actor> actor_;
  caf::strong_actor_ptr supervisor_;
  std::unique_ptr<http::io_threads> threads_;
  std::unique_ptr<http::server> server_;
};

}  // namespace

result<std::unique_ptr<role>> start(runtime& process, const settings& how, std::shared_ptr<index_set> indexes,
                                    registrar engines) {
  auto made = std::make_unique<running_indexer>(process, how, std::move(indexes));
  if (auto problem = made->serve(how, std::move(engines)); problem.code != errc::none) return problem;
  return std::unique_ptr<role>(std::move(made));
}

}  // namespace infernex::indexer
