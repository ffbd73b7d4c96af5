#include <sys/utsname.h>
#include <unistd.h>

#include <fstream>

#include "actors/runtime/http/admin.hpp"
#include "actors/runtime/log.hpp"
#include "actors/runtime/metrics.hpp"
#include "actors/runtime/supervisor.hpp"
#include "monitor/actor.hpp"
#include "monitor/fleet_source.hpp"
#include "monitor/host_reader.hpp"
#include "monitor/node_source.hpp"
#include "monitor/replay_source.hpp"

namespace infernex::monitor {

namespace {

std::string host_name() {
  char name[256] = "localhost";
  ::gethostname(name, sizeof name - 1);
  return name;
}

std::unique_ptr<report_source> source_of_node(const runtime& process, const settings& how) {
  collector_settings collect;
  collect.node = how.node.empty() ? host_name() : how.node;
  collect.epoch = process.epoch;
  collect.expected_devices = how.expected_devices;
  return std::make_unique<node_source>(std::move(collect), readers_of_node(how));
}

result<std::unique_ptr<report_source>> make_source(const runtime& process, const settings& how) {
  if (how.from == origin_kind::simulated) {
    auto fleet = sim_fleet::make(how.sim, how.faults);
    if (!fleet) return fleet.failure();
    return std::unique_ptr<report_source>(std::make_unique<fleet_source>(*std::move(fleet)));
  }
  if (how.from == origin_kind::recording) {
    auto recording = recording_reader::open(how.replay);
    if (!recording) return recording.failure();
    return std::unique_ptr<report_source>(std::make_unique<replay_source>(*std::move(recording), how.replay_speed));
  }
  return source_of_node(process, how);
}

/// The process's own metrics, and those of the devices under the names that their exporters gave them.
http::task<void> answer_scrape(const metrics_registry& metrics, std::shared_ptr<exporter_pages> pages,
                               std::function<bool()> ready, const http::request& in, http::responder& out) {
  if (in.path == "/metrics" && in.method == "GET") {
    const std::string page = metrics.render() + pages->all();
    co_await out.send(200, "text/plain; version=0.0.4; charset=utf-8", page);
    co_return;
  }
  if (co_await http::answer_admin(metrics, ready, in, out)) co_return;
  co_await out.send(404, "text/plain; charset=utf-8", "only /metrics, /healthz and /readyz are here\n");
}

class running_monitor final : public role {
 public:
  explicit running_monitor(const runtime& process) : process_(process), threads_(1) {}
  ~running_monitor() override { stop(std::chrono::milliseconds(2'000)); }

  error open(const settings& how) {
    std::optional<recorder> record;
    if (!how.record.empty()) {
      auto made = recorder::create(how.record, how.record_bytes);
      if (!made) return made.failure();
      record = *std::move(made);
    }
    auto source = make_source(process_, how);
    if (!source) return source.failure();
    auto pages = std::make_shared<exporter_pages>();
    if (how.admin_port) {
      http::server_settings where;
      where.port = *how.admin_port;
      auto listening =
          http::server::listen(threads_, where,
                               [&metrics = process_.metrics, &messages = process_.messages, pages](
                                   http::worker&, http::request& in, http::responder& out) {
                                 return answer_scrape(
                                     metrics, pages, [&messages] { return messages.connected(); }, in, out);
                               });
      if (!listening) return listening.failure();
      admin_ = *std::move(listening);
      log::info("monitor's metrics", {{"port", admin_->port()}});
    }
    auto world = std::make_shared<monitor_world>();
    world->source = *std::move(source);
    world->to = std::make_unique<publisher>(process_, how, std::move(record), pages);
    world->interval = how.interval;
    child_spec spec{"monitor", [process = process_, world](caf::actor_system&) {
                      return caf::actor_cast<caf::strong_actor_ptr>(spawn_monitor_actor(process, world));
                    }};
    supervisor_ = caf::actor_cast<caf::strong_actor_ptr>(
        spawn_supervisor(process_.system, process_.metrics, {std::move(spec)}, {}, process_.give_up));
    return {};
  }

  void stop(std::chrono::milliseconds deadline) override {
    if (supervisor_) stop_and_wait(process_.system, std::exchange(supervisor_, nullptr), deadline);
    admin_.reset();
    threads_.stop();
  }

 private:
  runtime process_;
  http::io_threads threads_;
  std::unique_ptr<http::server> admin_;
  caf::strong_actor_ptr supervisor_;
};

}  // namespace

result<std::unique_ptr<role>> start(const runtime& process, const settings& how) {
  auto made = std::make_unique<running_monitor>(process);
  if (auto problem = made->open(how); problem.code != errc::none) return problem;
  return std::unique_ptr<role>(std::move(made));
}

}  // namespace infernex::monitor
