// A diagnosis over a real nats-server, with monitors that exist on the bus only.

#include <unistd.h>

#include <filesystem>
#include <fstream>
#include <map>
#include <mutex>
#include <sstream>

#include <boost/asio/ip/tcp.hpp>
#include <doctest/doctest.h>

#include "actors/runtime/metrics.hpp"
#include "diagnosis/actor.hpp"
#include "tests/support/nats_server.hpp"
#include "tests/support/wait.hpp"

namespace infernex::diagnosis {
namespace {

using namespace std::chrono_literals;
using test::eventually;

class diagnosis_world {
 public:
  explicit diagnosis_world(settings how = {}) {
    bus_settings to;
    to.url = server_.url();
    outside = *bus::connect(to, outside_metrics_);
    inside_ = *bus::connect(to, inside_metrics_);
    process_.emplace(runtime{system_, *inside_, inside_metrics_, "test-1", 1});
    heard_ = *outside->subscribe(outside->names().any_verdict(), {}, [this](inbound<fb::Verdict>&& m) {
      const std::lock_guard lock(guard_);
      std::unique_ptr<fb::VerdictT> verdict(m.message->UnPack());
      subjects_[verdict->id] = m.subject;
      verdicts_.push_back(std::move(verdict));
    });
    how.admin_port = 0;
    how.repeat = 1000ms;
    auto started = start(*process_, how);
    REQUIRE(started);
    running = *std::move(started);
  }
  ~diagnosis_world() {
    running->stop(2s);
    running.reset();
    heard_ = {};
    outside->close(1s);
    inside_->close(1s);
  }

  void say(const std::vector<std::uint64_t>& codes, const std::string& as = "n0") {
    monitor::node_sample sample;
    sample.node = "n0";
    sample.time = 1'700'000'000'000'000'000;
    auto& device = sample.devices.emplace_back();
    device.index = 3;
    device.vendor = fb::HwVendor::Ascend;
    device.codes = codes;
    outside->publish(outside->names().hw_sample(as), monitor::pack(sample), lane::rpc);
  }
  /// The last word on a rule: its state, and how often it was told.
  std::pair<fb::VerdictState, int> word_on(std::string_view rule) {
    const std::lock_guard lock(guard_);
    std::pair<fb::VerdictState, int> last{fb::VerdictState::Unknown, 0};
    for (const auto& v : verdicts_)
      if (v->rule == rule) last = {v->state, last.second + 1};
    return last;
  }
  fb::VerdictAction action_of_device() {
    const std::lock_guard lock(guard_);
    return verdicts_.empty() ? fb::VerdictAction::Ok : verdicts_.back()->device_action;
  }
  std::string any_subject() {
    const std::lock_guard lock(guard_);
    return subjects_.empty() ? std::string{} : subjects_.begin()->second;
  }
  /// Status line, head and body.
  std::string get(const std::string& path) const {
    boost::asio::ip::tcp::iostream connection("127.0.0.1", std::to_string(running->port().value()));
    connection << "GET " << path << " HTTP/1.1\r\nHost: test\r\nConnection: close\r\n\r\n" << std::flush;
    std::ostringstream all;
    all << connection.rdbuf();
    return all.str();
  }

  std::unique_ptr<bus> outside;
  std::unique_ptr<diagnosis_role> running;

 private:
  test::nats_server server_;
  metrics_registry outside_metrics_;
  metrics_registry inside_metrics_;
  std::unique_ptr<bus> inside_;
  actor_config config_;
  caf::actor_system system_{config_};
  std::optional<runtime> process_;
  std::mutex guard_;
  std::vector<std::unique_ptr<fb::VerdictT>> verdicts_;
  std::map<std::string, std::string> subjects_;
  subscription heard_;
};

bool contains(const std::string& text, std::string_view part) { return text.find(part) != text.npos; }

constexpr std::string_view rule_of_test = "ascend-hbm-multi-bit";

}  // namespace

TEST_CASE("a sample with a code becomes a verdict on the bus, a report over HTTP, and is cleared again") {
  diagnosis_world world;
  REQUIRE(eventually([&] {
    world.say({0x80E01801});
    return world.word_on(rule_of_test).first == fb::VerdictState::Raised;
  }));
  CHECK(world.any_subject() == world.outside->names().verdict("n0", 3).name);
  CHECK(world.action_of_device() == fb::VerdictAction::Isolate);
  // Who starts late is told too.
  REQUIRE(eventually([&] {
    world.say({0x80E01801});
    return world.word_on(rule_of_test).second >= 3;
  }));
  REQUIRE(eventually([&] { return contains(world.get("/report"), "Uncorrectable HBM error"); }));
  CHECK(contains(world.get("/report"), "text/html"));
  CHECK(contains(world.get("/verdicts"), "\"rule\":\"ascend-hbm-multi-bit\""));
  CHECK(contains(world.get("/verdicts?node=another"), "\"verdicts\":[]"));
  CHECK(contains(world.get("/verdicts?node=n%30"), "ascend-hbm-multi-bit"));
  CHECK(contains(world.get("/report.txt"), "n0/3  major, isolate"));
  CHECK(contains(world.get("/metrics"), "infernex_diagnosis_standing_verdicts{severity=\"major\"} 1"));
  CHECK(contains(world.get("/nothing"), "404"));
  REQUIRE(eventually(
      [&] {
        world.say({});
        return world.word_on(rule_of_test).first == fb::VerdictState::Cleared;
      },
      30s));
  CHECK(world.action_of_device() == fb::VerdictAction::Ok);
}

TEST_CASE("nobody speaks for another node") {
  diagnosis_world world;
  REQUIRE(eventually([&] {
    world.say({0x80E01801}, "n1");
    return contains(world.get("/metrics"), "infernex_diagnosis_impostors_total") &&
           !contains(world.get("/metrics"), "infernex_diagnosis_impostors_total 0");
  }));
  CHECK(world.word_on(rule_of_test).second == 0);
}

TEST_CASE("overrides are read anew when they change, and refused while they have mistakes") {
  const auto file = std::filesystem::temp_directory_path() / ("overrides-" + std::to_string(::getpid()) + ".yaml");
  const auto write = [&](const std::string& text) { std::ofstream(file) << text; };
  write("overrides: []\n");
  settings how;
  how.overrides = file.string();
  diagnosis_world world(how);
  REQUIRE(eventually([&] {
    world.say({0x80E01801});
    return world.word_on(rule_of_test).first == fb::VerdictState::Raised;
  }));
  write("overrides:\n  - {rule: nobody-knows-it, enabled: false}\n");
  REQUIRE(eventually([&] {
    return contains(world.get("/metrics"), "infernex_diagnosis_config_reloads_total{result=\"refused\"} 1");
  }));
  CHECK(contains(world.get("/verdicts"), "ascend-hbm-multi-bit"));
  write("overrides:\n  - {rule: ascend-hbm-multi-bit, severity: warning, action: watch, because: a test}\n");
  REQUIRE(eventually([&] {
    world.say({0x80E01801});
    return contains(world.get("/verdicts"), "a test (");
  }));
  std::filesystem::remove(file);
}

TEST_CASE("a knowledge base with mistakes does not start") {
  settings how;
  how.knowledge = "/nowhere";
  metrics_registry metrics;
  test::nats_server server;
  bus_settings to;
  to.url = server.url();
  auto messages = *bus::connect(to, metrics);
  actor_config config;
  caf::actor_system system{config};
  const runtime process{system, *messages, metrics, "test-2", 1};
  const auto started = start(process, how);
  REQUIRE(!started);
  CHECK(started.failure().code == errc::invalid_request);
  messages->close(1s);
}

}  // namespace infernex::diagnosis
