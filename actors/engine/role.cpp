#include <algorithm>
#include <chrono>
#include <functional>
#include <future>
#include <map>
#include <mutex>
#include <set>
#include <utility>

#include <zmq.hpp>

#include "actors/discovery/static_list.hpp"
#include "actors/engine/actor.hpp"
#include "actors/engine/agents.hpp"
#include "actors/engine/epoch_source.hpp"
#include "actors/runtime/http/admin.hpp"
#include "actors/runtime/log.hpp"
#include "actors/runtime/supervisor.hpp"

namespace infernex::engine {

namespace {

std::uint64_t now_ns() {
  const auto since_1970 = std::chrono::system_clock::now().time_since_epoch();
  return static_cast<std::uint64_t>(std::chrono::duration_cast<std::chrono::nanoseconds>(since_1970).count());
}

/// Engines that were added, for callers and for the supervisors of their agents.
struct added_engines {
  struct entry {
    engine_descriptor engine;
    supervisor_actor supervisor;
    /// Tells it from one that was added before under the same name.
    std::uint64_t number = 0;
  };
  std::mutex guard;
  std::map<std::string, entry> all;
  std::uint64_t count = 0;
};

/// Says of an engine that is no longer followed what a new agent would that finds it gone.
void announce_end(bus& messages, const engine_descriptor& engine, std::uint64_t epoch) {
  fb::EngineAnnounceT last;
  last.origin = std::make_unique<fb::OriginT>();
  last.origin->id = "agent/" + engine.instance;
  last.origin->epoch = epoch;
  last.origin->sequence = 1;
  last.model = engine.model;
  last.instance = engine.instance;
  last.url = engine.url;
  last.role = engine.role;
  last.state = fb::EngineState::Down;
  last.reason = "no longer followed";
  if (messages.publish(messages.names().announce(engine.model, engine.instance), encode(last)) != errc::none)
    log::warn("an engine's end could not be announced", {{"instance", engine.instance}});
}

class running_agents final : public agents {
 public:
  running_agents(runtime& process, const settings& with, agents_limits limits, std::unique_ptr<http::server> admin,
                 std::shared_ptr<http::io_threads> threads)
      : process_(process),
        limits_(limits),
        threads_(std::move(threads)),
        admin_(std::move(admin)),
        epochs_(std::make_shared<epoch_source>(process.epoch)) {
    // Announces its own end: when the last agent has let go of the world, nothing of ours runs any more.
    world_.reset(
        new agent_world{process, std::make_shared<const settings>(with), threads_, std::make_shared<zmq::context_t>(1)},
        [ended = ended_](const agent_world* last) {
          delete last;
          ended->set_value();
        });
    std::vector<child_spec> children;
    for (const auto& engine : with.engines) {
      children.push_back(child_of(engine, process.epoch));
      fixed_.insert(engine.instance);
    }
    supervisor_ = spawn_supervisor(process.system, process.metrics, std::move(children), {}, process.give_up);
  }
  ~running_agents() override { stop(std::chrono::seconds(5)); }

  error add(const engine_descriptor& engine) override {
    const std::lock_guard lock(added_->guard);
    if (!world_) return {errc::cancelled, "this process is ending"};
    if (auto problem = check(engine); problem.code != errc::none) return problem;
    names_.insert(engine.instance);
    const auto number = ++added_->count;
    auto supervisor = spawn_supervisor(process_.system, process_.metrics, {child_of(engine, epochs_->take(now_ns()))},
                                       {}, given_up(engine, number));
    added_->all.emplace(engine.instance, added_engines::entry{engine, std::move(supervisor), number});
    return {};
  }

  bool remove(const std::string& instance) override {
    const std::lock_guard lock(added_->guard);
    const auto it = added_->all.find(instance);
    if (it == added_->all.end()) return false;
    caf::anon_send_exit(it->second.supervisor, caf::exit_reason::user_shutdown);
    announce_end(process_.messages, it->second.engine, epochs_->take(now_ns()));
    added_->all.erase(it);
    return true;
  }

  bool follows(const std::string& instance) const override {
    const std::lock_guard lock(added_->guard);
    return added_->all.contains(instance);
  }

  void stop(std::chrono::milliseconds deadline) override {
    if (!supervisor_) return;
    const auto until = std::chrono::steady_clock::now() + deadline;
    {
      const std::lock_guard lock(added_->guard);
      for (auto& [name, one] : added_->all) caf::anon_send_exit(one.supervisor, caf::exit_reason::user_shutdown);
      added_->all.clear();
      world_.reset();
    }
    stop_and_wait(process_.system, caf::actor_cast<caf::strong_actor_ptr>(supervisor_), deadline);
    supervisor_ = nullptr;
    ended_->get_future().wait_until(until);
    admin_.reset();
    threads_->stop();
  }

 private:
  /// The process's epoch for the first incarnation of an agent of its own, a later one for each that follows, since
  /// their sequences begin anew.
  child_spec child_of(const engine_descriptor& engine, std::uint64_t first) const {
    return {"agent/" + engine.instance,
            [world = world_, engine, epochs = epochs_, epoch = first](caf::actor_system&) mutable {
              auto agent = caf::actor_cast<caf::strong_actor_ptr>(spawn_agent(world, engine, epoch));
              epoch = epochs->take(now_ns());
              return agent;
            }};
  }

  /// An added engine that cannot be followed is given up alone: others are not to suffer for what a caller registered.
  /// Called by its supervisor, which may outlive us; what it was given of the world lives as long.
  std::function<void(const std::string&)> given_up(const engine_descriptor& engine, std::uint64_t number) const {
    return [world = world_, added = added_, epochs = epochs_, engine, number](const std::string&) {
      const std::lock_guard lock(added->guard);
      const auto it = added->all.find(engine.instance);
      if (it == added->all.end() || it->second.number != number) return;
      caf::anon_send_exit(it->second.supervisor, caf::exit_reason::user_shutdown);
      announce_end(world->process.messages, engine, epochs->take(now_ns()));
      added->all.erase(it);
    };
  }

  error check(const engine_descriptor& engine) const {
    for (const auto& mistake : discovery::find_mistakes({&engine, 1}))
      if (mistake.key != "url" || !engine.url.empty())
        return {errc::invalid_request, mistake.key + ": " + mistake.message};
    if (engine.model.empty()) return {errc::invalid_request, "model: a name is required"};
    if (fixed_.contains(engine.instance) || added_->all.contains(engine.instance))
      return {errc::invalid_request, engine.instance + " is followed already"};
    if (added_->all.size() >= limits_.max_added)
      return {errc::overloaded, "at most " + std::to_string(limits_.max_added) + " engines may be added at once"};
    if (!names_.contains(engine.instance) && names_.size() >= limits_.max_names)
      return {errc::overloaded, "too many different names have been added since this process started"};
    return {};
  }

  runtime process_;
  agents_limits limits_;
  std::shared_ptr<http::io_threads> threads_;
  std::unique_ptr<http::server> admin_;
  std::shared_ptr<std::promise<void>> ended_ = std::make_shared<std::promise<void>>();
  supervisor_actor supervisor_;
  std::set<std::string> fixed_;
  std::shared_ptr<epoch_source> epochs_;
  std::shared_ptr<added_engines> added_ = std::make_shared<added_engines>();
  // Guarded by that of the added engines.
  std::shared_ptr<const agent_world> world_;
  std::set<std::string> names_;
};

}  // namespace

result<std::unique_ptr<agents>> start_agents(runtime& process, const settings& with, agents_limits limits) {
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
  return std::unique_ptr<agents>(
      std::make_unique<running_agents>(process, with, limits, std::move(admin), std::move(threads)));
}

result<std::unique_ptr<role>> start(runtime& process, const settings& with) {
  auto started = start_agents(process, with);
  if (!started) return started.failure();
  return std::unique_ptr<role>(*std::move(started));
}

}  // namespace infernex::engine
