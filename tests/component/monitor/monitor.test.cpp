// The monitor over a real nats-server, and its workers with a driver that hangs.
#include <unistd.h>

#include <algorithm>
#include <condition_variable>
#include <cstdlib>
#include <filesystem>
#include <mutex>

#include <doctest/doctest.h>

#include "actors/runtime/bus.hpp"
#include "actors/runtime/metrics.hpp"
#include "monitor/actor.hpp"
#include "monitor/host_reader.hpp"
#include "monitor/node_source.hpp"
#include "tests/support/nats_server.hpp"
#include "tests/support/wait.hpp"

namespace infernex::monitor {
namespace {

using namespace std::chrono_literals;
using test::eventually;

std::unique_ptr<bus> join(const test::nats_server& server, metrics_registry& metrics) {
  bus_settings how;
  how.url = server.url();
  auto made = bus::connect(how, metrics);
  REQUIRE(made);
  return *std::move(made);
}

struct monitor_setup {
  test::nats_server server;
  metrics_registry metrics;
  std::unique_ptr<bus> outside = join(server, metrics);
  std::unique_ptr<bus> inside = join(server, metrics);
  actor_config config;
  caf::actor_system system{config};
  runtime process{system, *inside, metrics, "test-1", 7};
  std::unique_ptr<role> running;
  std::mutex guard;
  std::map<std::string, std::vector<node_sample>> samples;
  std::vector<hw_event> events;
  std::vector<hw_inventory> inventories;
  std::vector<std::string> mirrored;
  std::vector<subscription> subscriptions;

  monitor_setup() {
    keep(outside->subscribe(outside->names().any_hw_sample(), {}, [this](inbound<fb::HwSample>&& m) {
      const std::lock_guard lock(guard);
      node_sample sample;
      unpack(*m.message, sample);
      samples[sample.node].push_back(std::move(sample));
    }));
    keep(outside->subscribe(outside->names().any_hw_event(), {}, [this](inbound<fb::HwEvent>&& m) {
      const std::lock_guard lock(guard);
      m.message->UnPackTo(&events.emplace_back());
    }));
    keep(outside->subscribe(outside->names().any_hw_inventory(), {}, [this](inbound<fb::HwInventory>&& m) {
      const std::lock_guard lock(guard);
      m.message->UnPackTo(&inventories.emplace_back());
    }));
    keep(outside->subscribe_bytes("eagle_eye.hardware.hardware_monitor", {}, [this](inbound_bytes&& m) {
      const std::lock_guard lock(guard);
      mirrored.emplace_back(m.data.bytes().begin(), m.data.bytes().end());
    }));
  }
  ~monitor_setup() {
    if (running) running->stop(2s);
    running.reset();
    subscriptions.clear();
    outside->close(1s);
    inside->close(1s);
  }
  void keep(result<subscription> made) {
    REQUIRE(made);
    subscriptions.push_back(*std::move(made));
  }
  void run(const settings& how) {
    // The last of the subscriptions is known to the server, so all of them are.
    const std::vector<std::uint8_t> probe{'?'};
    REQUIRE(sees([&] {
      inside->publish_bytes("eagle_eye.hardware.hardware_monitor", "text/plain", probe, lane::rpc);
      return !mirrored.empty();
    }));
    auto made = start(process, how);
    REQUIRE(made);
    running = *std::move(made);
  }
  template <class Condition>
  bool sees(Condition condition) {
    return eventually([&] {
      const std::lock_guard lock(guard);
      return condition();
    });
  }
};

/// A device whose driver hangs until it is let go.
class stuck_reader final : public reader {
 public:
  stuck_reader(std::uint32_t device, bool stuck) : device_(device), stuck_(stuck) {}
  fb::HwSource kind() const override { return fb::HwSource::Dcmi; }
  std::string name() const override { return "stuck"; }
  std::optional<std::uint32_t> device() const override { return device_; }
  std::uint32_t period_ms() const override { return 1; }
  std::uint32_t deadline_ms() const override { return 50; }
  reading_round read() override {
    std::unique_lock lock(guard_);
    changed_.wait(lock, [this] { return !stuck_; });
    reading_round found;
    auto& one = found.devices.emplace_back();
    one.index = device_;
    one.values.set(metric::Temperature, 50.0 + ++calls_ % 10);
    return found;
  }
  void let_go() {
    const std::lock_guard lock(guard_);
    stuck_ = false;
    changed_.notify_all();
  }

 private:
  std::uint32_t device_;
  std::mutex guard_;
  std::condition_variable changed_;
  bool stuck_;
  int calls_ = 0;
};

TEST_CASE("a simulated fleet is on the bus: samples in sequence, events, inventory, JSON, a recording to play again") {
  const std::string file = (std::filesystem::temp_directory_path() / "infernex-monitor-test.rec").string();
  {
    monitor_setup s;
    settings how;
    how.from = origin_kind::simulated;
    how.interval = 20ms;
    how.sim.nodes = 2;
    how.faults = {{fault_kind::ecc_double, 1, 3, 2000, 600'000}};
    how.record = file;
    how.mirror = true;
    s.run(how);
    REQUIRE(s.sees([&] { return s.samples["sim-1"].size() >= 5 && !s.events.empty() && s.inventories.size() >= 2; }));
    const std::lock_guard lock(s.guard);
    const auto& samples = s.samples["sim-1"];
    CHECK(samples[0].devices.size() == 8);
    CHECK(samples[0].source == "monitor/sim-1");
    CHECK(samples[0].epoch == 7);
    for (std::size_t i = 0; i < samples.size(); ++i) CHECK(samples[i].sequence == i + 1);
    CHECK(s.events[0].node == "sim-1");
    CHECK(s.events[0].device == 3);
    CHECK(s.events[0].code == 0x80E01801);
    CHECK(std::ranges::any_of(
        s.mirrored, [](const std::string& one) { return one.starts_with(R"({"message":"HwSample","body":{)"); }));
  }
  monitor_setup s;
  settings how;
  how.from = origin_kind::recording;
  how.replay = file;
  how.interval = 10ms;
  how.replay_speed = 10;
  s.run(how);
  CHECK(s.sees([&] { return !s.samples["sim-1"].empty() && !s.events.empty() && s.inventories.size() >= 2; }));
  std::filesystem::remove(file);
}

TEST_CASE("this node's own numbers are on the bus") {
  monitor_setup s;
  settings how;
  how.node = "here";
  how.interval = 20ms;
  s.run(how);
  CHECK(s.sees([&] {
    const auto& samples = s.samples["here"];
    return !samples.empty() && samples.back().values.get(metric::NodeMemoryTotal).value_or(0) > 1e8 &&
           samples.back().values.get(metric::NodeLoad1);
  }));
}

TEST_CASE("the kernel's log is read from its end on, and one that cannot be read is a problem in words") {
  char pattern[] = "/tmp/infernex-kmsg-XXXXXX";
  const int made = ::mkstemp(pattern);
  REQUIRE(made >= 0);
  const auto append = [&](std::string_view line) {
    REQUIRE(::write(made, line.data(), line.size()) == static_cast<ssize_t>(line.size()));
  };
  append("6,1,2,-;NVRM: Xid (PCI:0000:5d:00): 31, pid=1\n");
  const auto log = make_kernel_log_reader(pattern);
  CHECK(log->read().events.empty());
  append("6,2,3,-;NVRM: Xid (PCI:0000:5d:00): 79, pid=1\n");
  const auto found = log->read();
  REQUIRE(found.events.size() == 1);
  CHECK(found.events[0].code == 79);
  CHECK(log->read().events.empty());
  ::close(made);
  std::filesystem::remove(pattern);
  CHECK(make_kernel_log_reader("/nowhere/kmsg")->read().problems.size() == 1);
}

TEST_CASE("a driver that hangs stops neither the other devices nor the end of the monitor, and is told") {
  auto stuck = std::make_shared<stuck_reader>(0, true);
  auto fine = std::make_shared<stuck_reader>(1, false);
  collector_settings how;
  how.node = "n";
  std::optional<double> hang;
  std::size_t raised = 0;
  std::size_t cleared = 0;
  std::size_t changes = 0;
  double last = 0;
  {
    node_source source(how, {stuck, fine});
    const auto poll = [&] {
      source.poll({steady_now_ms(), 1}, [&](node_report&& report) {
        for (const auto& event : report.events) {
          if (event.kind != fb::HwEventKind::DriverHang) continue;
          CHECK(event.device == 0);
          (event.assertion == fb::HwAssertion::Raised ? raised : cleared) += 1;
        }
        if (const auto* one = report.sample->find(0)) hang = one->values.get(metric::DriverHangMs);
        const auto* other = report.sample->find(1);
        const auto now = other ? other->values.get(metric::Temperature).value_or(0) : 0;
        if (now != last) ++changes;
        last = now;
      });
    };
    CHECK(eventually([&] {
      poll();
      return raised == 1 && hang.value_or(0) >= 50 && changes > 5;
    }));
    stuck->let_go();
    CHECK(eventually([&] {
      poll();
      return cleared == 1 && !hang;
    }));
  }
  auto forever = std::make_shared<stuck_reader>(0, true);
  {
    node_source source(how, {forever});
    source.poll({steady_now_ms(), 1}, [](node_report&&) {});
  }  // ends without it
  forever->let_go();
}

}  // namespace
}  // namespace infernex::monitor
