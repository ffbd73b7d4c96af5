#include "actors/router/actor.hpp"
#include "actors/router/picker_config.hpp"
#include "actors/runtime/config_watch.hpp"
#include "actors/runtime/http/admin.hpp"
#include "actors/runtime/log.hpp"
#include "actors/runtime/supervisor.hpp"

namespace infernex::router {
namespace {

class running_router final : public role {
 public:
  running_router(runtime& process, const settings& how)
      : process_(process), facts_(std::make_shared<router_facts>(process, how)) {
    child_spec spec{"router", [this, how](caf::actor_system&) {
                      auto actor = spawn_router_actor(process_, how, facts_);
                      actor_.set(actor);
                      // One that was read while no actor was there.
                      if (auto config = published<scheduler_spec>::reader(newest_).shared())
                        caf::anon_send(actor, std::move(config));
                      return caf::actor_cast<caf::strong_actor_ptr>(actor);
                    }};
    supervisor_ = caf::actor_cast<caf::strong_actor_ptr>(
        spawn_supervisor(process.system, process.metrics, {std::move(spec)}, {}, process.give_up));
    if (const auto& from = how.policy.source)
      watch_.emplace(process.metrics, config_watch::settings{"router", from->file, from->stamp, from->remarks},
                     [this, file = from->file] { return reload(file); });
  }
  ~running_router() override { stop(std::chrono::seconds(2)); }

  error serve(const settings& how) {
    if (!how.admin_port) return {};
    threads_ = std::make_unique<http::io_threads>(1);
    http::server_settings server;
    server.address = how.admin_address;
    server.port = *how.admin_port;
    auto listening = http::serve_admin(*threads_, server, process_.metrics,
                                       [&connection = process_.messages] { return connection.connected(); });
    if (!listening) return listening.failure();
    server_ = *std::move(listening);
    log::info("router listens", {{"address", how.admin_address}, {"port", server_->port()}});
    return {};
  }

  void stop(std::chrono::milliseconds deadline) override {
    if (!supervisor_) return;
    watch_.reset();
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
  config_watch::outcome reload(const std::string& file) {
    auto read = load_picker_config(file);
    if (read.spec) {
      const auto config = std::make_shared<const scheduler_spec>(*std::move(read.spec));
      newest_.publish(config);
      actor_.send(config);
    }
    return {read.problems(), std::move(read.remarks)};
  }

  runtime process_;
  std::shared_ptr<router_facts> facts_;
  published<scheduler_spec> newest_;
  current_actor<router_actor> actor_;
  caf::strong_actor_ptr supervisor_;
  std::unique_ptr<http::io_threads> threads_;
  std::unique_ptr<http::server> server_;
  std::optional<config_watch> watch_;
};

}  // namespace

result<std::unique_ptr<role>> start(runtime& process, const settings& how) {
  auto made = std::make_unique<running_router>(process, how);
  if (auto problem = made->serve(how); problem.code != errc::none) return problem;
  return std::unique_ptr<role>(std::move(made));
}

}  // namespace infernex::router
