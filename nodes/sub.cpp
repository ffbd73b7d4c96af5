#include <signal.h>
#include <unistd.h>

#include <atomic>
#include <iostream>
#include <mutex>

#include <CLI/CLI.hpp>

#include "actors/runtime/bus.hpp"
#include "actors/runtime/log.hpp"
#include "actors/runtime/metrics.hpp"
#include "messages/decode.hpp"
#include "nodes/commands.hpp"
#include "nodes/signals.hpp"

namespace infernex::nodes {

namespace {

struct sub_options {
  std::string subject = "ix.v1.>";
  std::string nats = "nats://127.0.0.1:4222";
  std::uint64_t count = 0;
};

int watch(const sub_options& options) {
  block_signals();
  log::configure(log::level::warn, "sub");
  metrics_registry metrics;
  bus_settings settings;
  settings.url = options.nats;
  settings.client_name = "infernex-sub";
  auto connection = bus::connect(settings, metrics);
  if (!connection) {
    std::cerr << "infernex sub: " << render(connection.failure()) << '\n';
    return 1;
  }
  std::mutex output;
  std::uint64_t seen = 0;
  auto printing = (*connection)->subscribe_bytes(options.subject, {}, [&output, &seen, &options](inbound_bytes&& in) {
    const auto json = decode_to_json(in.data.bytes());
    const std::lock_guard lock(output);
    if (options.count != 0 && seen >= options.count) return;
    // A subject consists of escaped tokens and wildcards: nothing in it needs escaping for JSON.
    if (json)
      std::cout << "{\"subject\":\"" << in.subject << "\"," << json->substr(1) << std::endl;
    else
      std::cerr << in.subject << ": " << render(json.failure()) << std::endl;
    if (++seen == options.count) ::kill(::getpid(), SIGTERM);
  });
  if (!printing) {
    std::cerr << "infernex sub: " << render(printing.failure()) << '\n';
    return 1;
  }
  wait_for_end();
  (*connection)->close(std::chrono::seconds(2));
  return 0;
}

}  // namespace

void add_sub(CLI::App& app, action& chosen) {
  auto options = std::make_shared<sub_options>();
  auto* command = app.add_subcommand("sub", "Print the messages of a subject as JSON lines");
  command->add_option("subject", options->subject, "NATS subject, wildcards allowed")->capture_default_str();
  command->add_option("--nats", options->nats, "NATS server")->capture_default_str();
  command->add_option("--count", options->count, "End after so many messages (0: never)")->capture_default_str();
  command->callback([options, &chosen] { chosen = [options] { return watch(*options); }; });
}

}  // namespace infernex::nodes
