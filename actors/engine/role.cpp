#include <algorithm>
#include <chrono>
#include <future>
#include <utility>

#include <zmq.hpp>

#include "actors/discovery/static_list.hpp"
#include "actors/engine/actor.hpp"
#include "actors/runtime/http/admin.hpp"
#include "actors/runtime/supervisor.hpp"

namespace infernex::engine {

namespace {

std::uint64_t now_ns() {
  const auto since_1970 = std::chrono::system_clock::now().time_since_epoch();
  return static_cast<std::uint64_t>(std::chrono::duration_cast<std::chrono::nanoseconds>(since_1970).count());
}

/// The process's epoch for the first incarnation of an agent, a later one for each that follows, since its
/// sequences begin anew.
class agent_epochs {
 public:
  explicit agent_epochs(std::uint64_t first) : next_(first) {}
  std::uint64_t take() {
    const auto epoch = next_;
    next_ = std::max(now_ns(), epoch + 1);
    return epoch;
  }

 private:
  std::uint64_t next_;
};

class agents final : public role {
 public:
  agents(runtime& process, const settings& with, std::unique_ptr<http::server> admin,
         std::shared_ptr<http::io_threads> threads)
      : system_(process.system), threads_(std::move(threads)), admin_(std::move(admin)) {
    // Announces its own end: when the last agent has let go of the world, nothing of ours runs any more.
    std::shared_ptr<const agent_world> world(
        new agent_world{process, std::make_shared<const settings>(with), threads_, std::make_shared<zmq::context_t>(1)},
        [ended = ended_](const agent_world* last) {
          delete last;
          ended->set_value();
        });
    std::vector<child_spec> children;
    for (const auto& engine : with.engines)
      children.push_back({"agent/" + engine.instance,
                          [world, engine, epochs = agent_epochs(process.epoch)](caf::actor_system&) mutable {
                            return caf::actor_cast<caf::strong_actor_ptr>(spawn_agent(world, engine, epochs.take()));
                          }});
    supervisor_ = spawn_supervisor(process.system, process.metrics, std::move(children), {}, process.give_up);
  }
  ~agents() override { stop(std::chrono::seconds(5)); }

  void stop(std::chrono::milliseconds deadline) override {
    if (!supervisor_) return;
    const auto until = std::chrono::steady_clock::now() + deadline;
    stop_and_wait(system_, caf::actor_cast<caf::strong_actor_ptr>(supervisor_), deadline);
    supervisor_ = nullptr;
    ended_->get_future().wait_until(until);
    admin_.reset();
    threads_->stop();
  }

 private:
  caf::actor_system& system_;
  std::shared_ptr<http::io_threads> threads_;
  std::unique_ptr<http::server> admin_;
  std::shared_ptr<std::promise<void>> ended_ = std::make_shared<std::promise<void>>();
  supervisor_actor supervisor_;
};

}  // namespace

result<std::unique_ptr<role>> start(runtime& process, const settings& with) {
  if (auto list = discovery::checked(with.engines); !list) return list.failure();
  auto threads = std::make_shared<http::io_threads>(1);
  std::unique_ptr<http::server> admin;
  if (with.admin_port) {
    http::server_settings where;
    where.port = *with.admin_port;
    auto listening = http::serve_admin(*threads, where, process.metrics,
                                       [&connection = process.messages] { return connection.connected(); });
    if (!listening) return listening.failure();
    admin = *std::move(listening);
  }
  return std::unique_ptr<role>(std::make_unique<agents>(process, with, std::move(admin), std::move(threads)));
}

}  // namespace infernex::engine
