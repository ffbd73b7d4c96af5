#include <atomic>
#include <chrono>
#include <fstream>
#include <iostream>
#include <mutex>

#include <CLI/CLI.hpp>

#include "actors/runtime/bus.hpp"
#include "actors/runtime/log.hpp"
#include "actors/runtime/metrics.hpp"
#include "actors/simulator/replay_record.hpp"
#include "nodes/commands.hpp"
#include "nodes/role_options.hpp"
#include "nodes/signals.hpp"

namespace infernex::nodes {

namespace {

using clock = std::chrono::steady_clock;

// Messages are handled as they come, one at a time, so that few are ever alive; and a query must not be refused by
// somebody who only watches.
constexpr std::uint32_t credit = 1 << 20;
constexpr auto close_deadline = std::chrono::seconds(2);

struct record_options {
  std::string out;
  std::string model;
  double seconds = 0;
};

int fail(const std::string& what) {
  std::cerr << "infernex record: " << what << '\n';
  return 1;
}

void report(const simulator::replay_recorder& recorder) {
  const auto& counts = recorder.counts();
  std::cerr << "recorded " << counts.recorded << " requests";
  if (!recorder.model().empty()) std::cerr << " of " << recorder.model();
  const auto say = [](std::uint64_t count, std::string_view why) {
    if (count != 0) std::cerr << "\n  not recorded: " << count << ' ' << why;
  };
  say(counts.no_query,
      "without a query on the bus (routed before the recording, or in a gateway with router: embedded)");
  say(counts.not_completed, "did not complete");
  say(counts.no_lengths, "without known lengths");
  say(counts.other_model, "of other models");
  say(counts.other_block_size, "with keys of another block size");
  say(counts.expired, "whose end was never reported");
  say(counts.over_bound, "over the bound of requests under way");
  say(recorder.pending(), "still under way");
  std::cerr << std::endl;
}

/// Until the time is up, a signal comes, or the file takes no more.
void wait(double seconds, const std::atomic<bool>& broken) {
  const auto end = clock::now() + std::chrono::duration<double>(seconds);
  for (;;) {
    const auto left = seconds > 0 ? std::chrono::duration_cast<std::chrono::milliseconds>(end - clock::now())
                                  : std::chrono::milliseconds(1'000);
    if (left.count() <= 0 || broken) return;
    if (wait_signal(std::min(left, std::chrono::milliseconds(1'000)))) return;
  }
}

int record(const bus_settings& where, const record_options& how) {
  block_signals();
  log::configure(log::level::warn, "record");
  std::ofstream file(how.out, std::ios::binary | std::ios::trunc);
  if (!file) return fail(how.out + " cannot be written");
  metrics_registry metrics;
  auto settings = where;
  settings.client_name = "infernex-record";
  auto connection = bus::connect(settings, metrics);
  if (!connection) return fail(render(connection.failure()));

  std::mutex one_at_a_time;
  std::atomic<bool> broken = false;
  simulator::replay_recorder recorder(how.model);
  const auto& names = (*connection)->names();
  const subscribe_options watching{.via = lane::stream, .queue_group = {}, .credit = credit};
  const auto on_query = [&one_at_a_time, &recorder](const inbound<fb::RouteQuery>& in) {
    const std::lock_guard lock(one_at_a_time);
    recorder.query(*in.message, in.received_at);
  };
  auto queries = (*connection)->subscribe(names.any_route_query(), watching, on_query);
  if (!queries) return fail(render(queries.failure()));
  auto addressed_queries = (*connection)->subscribe(names.any_route_query_of_any(), watching, on_query);
  if (!addressed_queries) return fail(render(addressed_queries.failure()));
  auto lives = (*connection)
                   ->subscribe(names.any_request_life(), watching,
                               [&one_at_a_time, &recorder, &file, &broken](const inbound<fb::RequestLife>& in) {
                                 const std::lock_guard lock(one_at_a_time);
                                 file << recorder.life(*in.message, in.received_at) << std::flush;
                                 if (!file) broken = true;
                               });
  if (!lives) return fail(render(lives.failure()));
  std::cerr << "recording to " << how.out << std::endl;
  wait(how.seconds, broken);
  (*connection)->close(close_deadline);
  report(recorder);
  if (!file) return fail(how.out + ": writing failed");
  return 0;
}

}  // namespace

void add_record(CLI::App& app, action& chosen) {
  auto* command =
      app.add_subcommand("record", "Record live traffic as a trace for `infernex replay`: no text, hashes only");
  auto role = add_role_options(*command);
  auto options = std::make_shared<record_options>();
  command->add_option("--out", options->out, "File to write")->required();
  command->add_option("--model", options->model, "Model to record; absent: the first that is asked for");
  command->add_option("--seconds", options->seconds, "End after so long; 0: with SIGINT or SIGTERM")
      ->check(CLI::Range(0.0, 1e7))
      ->capture_default_str();
  command->callback([role, options, &chosen] {
    chosen = [role, options] {
      const auto settings = load(*role);
      return settings ? record(settings->bus, *options) : 1;
    };
  });
}

}  // namespace infernex::nodes
