#include "actors/runtime/supervisor.hpp"

#include <caf/scheduler/test_coordinator.hpp>
#include <caf/scoped_actor.hpp>
#include <doctest/doctest.h>

#include "actors/runtime/log.hpp"
#include "actors/runtime/metrics.hpp"

using namespace infernex;
using namespace std::chrono_literals;

namespace {

struct test_config : caf::actor_system_config {
  test_config() { set("scheduler.policy", caf::atom("testing")); }
};

/// Everything runs on this thread, in virtual time. All actors end before the system does, else it hangs.
struct fixture {
  test_config config;
  caf::actor_system system{config};
  caf::scheduler::test_coordinator& scheduler = dynamic_cast<caf::scheduler::test_coordinator&>(system.scheduler());
  metrics_registry metrics;
  int started = 0;
  std::vector<std::string> given_up;
  supervisor_actor supervisor;

  fixture() { log::configure(log::level::off, "test"); }

  void supervise(restart_limits limits) {
    child_spec spec{"worker", [this](caf::actor_system& sys) {
                      ++started;
                      return caf::actor_cast<caf::strong_actor_ptr>(sys.spawn([](caf::event_based_actor* self) {
                        return caf::behavior{[self](tick) { self->quit(caf::exit_reason::unhandled_exception); }};
                      }));
                    }};
    supervisor =
        spawn_supervisor(system, metrics, {spec}, limits, [this](const std::string& n) { given_up.push_back(n); });
    scheduler.run();
  }
  caf::actor worker() {
    caf::scoped_actor self{system};
    caf::actor found;
    auto answer = self->request(supervisor, caf::infinite, get_child{"worker"});
    scheduler.run();
    answer.receive(
        [&found](const caf::strong_actor_ptr& p) {
          if (p) found = caf::actor_cast<caf::actor>(p);
        },
        [](const caf::error&) {});
    return found;
  }
  void crash_worker() {
    caf::anon_send(worker(), tick{});
    scheduler.run();
  }
  void pass(std::chrono::milliseconds time) {
    scheduler.advance_time(time);
    scheduler.run();
  }
  ~fixture() {
    caf::anon_send_exit(supervisor, caf::exit_reason::kill);
    supervisor = nullptr;
    scheduler.run();
  }
};

}  // namespace

TEST_CASE_FIXTURE(fixture, "a child that dies is started again after its pause, which doubles") {
  supervise({10, 60s, 100ms, 5s});
  CHECK(started == 1);
  crash_worker();
  CHECK(started == 1);
  CHECK(worker() == nullptr);
  pass(99ms);
  CHECK(started == 1);
  pass(1ms);
  CHECK(started == 2);
  CHECK(worker() != nullptr);
  crash_worker();
  pass(199ms);
  CHECK(started == 2);
  pass(1ms);
  CHECK(started == 3);
}

TEST_CASE_FIXTURE(fixture, "a child that dies too often is given up, and said so") {
  supervise({2, 60s, 10ms, 10ms});
  for (int i = 0; i < 2; ++i) {
    crash_worker();
    pass(10ms);
  }
  CHECK(started == 3);
  CHECK(given_up.empty());
  crash_worker();
  pass(1s);
  CHECK(started == 3);
  CHECK(given_up == std::vector<std::string>{"worker"});
}

TEST_CASE_FIXTURE(fixture, "deaths outside the window do not count") {
  supervise({2, 1s, 10ms, 10ms});
  for (int i = 0; i < 6; ++i) {
    crash_worker();
    pass(10ms);
    pass(900ms);
  }
  CHECK(started == 7);
  CHECK(given_up.empty());
}
