#include <signal.h>
#include <unistd.h>

#include <fstream>
#include <iostream>
#include <map>
#include <mutex>

#include <CLI/CLI.hpp>

#include "actors/runtime/bus.hpp"
#include "actors/runtime/log.hpp"
#include "actors/runtime/metrics.hpp"
#include "diagnosis/report.hpp"
#include "nodes/commands.hpp"
#include "nodes/diag_replay.hpp"
#include "nodes/fetch.hpp"
#include "nodes/signals.hpp"

namespace infernex::nodes {

namespace {

struct diag_options {
  std::string url = "http://127.0.0.1:9402";
  std::string nats = "nats://127.0.0.1:4222";
  std::string node;
  std::string html;
  std::string file;
  bool as_json = false;
};

int fail_diag(const error& problem) {
  std::cerr << "infernex diag: " << render(problem) << '\n';
  return 1;
}

bool write_report_page(const std::string& file, const std::string& page) {
  std::ofstream out(file, std::ios::binary);
  out << page;
  out.flush();
  if (!out) std::cerr << "infernex diag: " << file << ": cannot be written\n";
  return static_cast<bool>(out);
}

std::string escape_query(const std::string& text) {
  constexpr std::string_view digits = "0123456789ABCDEF";
  std::string out;
  for (const char c : text) {
    const auto byte = static_cast<unsigned char>(c);
    if (std::isalnum(byte) != 0 || c == '-' || c == '.' || c == '_') {
      out += c;
    } else {
      out += '%';
      out += digits[byte >> 4U];
      out += digits[byte & 15U];
    }
  }
  return out;
}

int report_now(const diag_options& how) {
  const auto query = how.node.empty() ? std::string{} : "?node=" + escape_query(how.node);
  const auto get = [&](const char* path) { return fetch("GET", how.url, path + query, {}, std::chrono::seconds(10)); };
  if (!how.html.empty()) {
    const auto page = get("/report");
    if (!page) return fail_diag(page.failure());
    return write_report_page(how.html, *page) ? 0 : 1;
  }
  const auto text = get(how.as_json ? "/verdicts" : "/report.txt");
  if (!text) return fail_diag(text.failure());
  std::cout << *text << (how.as_json ? "\n" : "");
  return 0;
}

/// What change_line() wants to know.
diagnosis::verdict brief_of(const fb::Verdict& from) {
  diagnosis::verdict v;
  v.who.node = text(from.node());
  v.who.device = from.device();
  v.id = text(from.id());
  v.state = from.state();
  v.grade = from.severity();
  v.act = from.action();
  v.pattern = text(from.pattern());
  v.title = text(from.title());
  v.changed_at = from.changed_at();
  v.cleared_at = from.cleared_at();
  v.suppressed_by = text(from.suppressed_by());
  return v;
}

int watch_verdicts(const diag_options& how) {
  block_signals();
  log::configure(log::level::warn, "diag");
  metrics_registry metrics;
  bus_settings settings;
  settings.url = how.nats;
  settings.client_name = "infernex-diag";
  auto connection = bus::connect(settings, metrics);
  if (!connection) return fail_diag(connection.failure());
  std::mutex output;
  // What stands is told again every few seconds: each change is shown once.
  std::map<std::string, std::uint64_t> shown;
  const auto to = (*connection)->names().any_verdict();
  auto watching = (*connection)->subscribe(to, {}, [&](inbound<fb::Verdict>&& in) {
    const auto v = brief_of(*in.message);
    if (!how.node.empty() && v.who.node != how.node) return;
    const std::lock_guard lock(output);
    auto& last = shown[v.id];
    if (std::exchange(last, v.changed_at) != v.changed_at) std::cout << diagnosis::change_line(v) << std::endl;
    if (!v.stands()) shown.erase(v.id);
  });
  if (!watching) return fail_diag(watching.failure());
  wait_for_end();
  (*connection)->close(std::chrono::seconds(2));
  return 0;
}

int replay_file(const diag_options& how) {
  auto told =
      replay_recording(how.file, [](const diagnosis::verdict& v) { std::cout << diagnosis::change_line(v) << '\n'; });
  if (!told) return fail_diag(told.failure());
  if (!how.html.empty() && !write_report_page(how.html, diagnosis::report_html(*told))) return 1;
  std::cout << (how.as_json ? diagnosis::report_json(*told) + '\n' : '\n' + diagnosis::report_text(*told));
  return 0;
}

}  // namespace

void add_diag(CLI::App& app, action& chosen) {
  auto* command = app.add_subcommand("diag", "What is wrong with the hardware");
  command->require_subcommand(1);
  auto options = std::make_shared<diag_options>();
  const auto add = [&](const char* name, const char* help, int (*run)(const diag_options&)) {
    auto* sub = command->add_subcommand(name, help);
    sub->callback([options, run, &chosen] { chosen = [options, run] { return run(*options); }; });
    return sub;
  };
  auto* now = add("report", "What stands now, from a running diagnosis", report_now);
  now->add_option("--url", options->url, "HTTP address of the diagnosis")->capture_default_str();
  now->add_option("--node", options->node, "Of this node only");
  auto* follow = add("watch", "Every change, as it happens", watch_verdicts);
  follow->add_option("--nats", options->nats, "NATS server")->capture_default_str();
  follow->add_option("--node", options->node, "Of this node only");
  auto* again = add("replay", "What the rules say of a recording", replay_file);
  again->add_option("file", options->file, "Written by infernex monitor --record")
      ->required()
      ->check(CLI::ExistingFile);
  for (auto* sub : {now, again}) {
    sub->add_option("--html", options->html, "Write the page to this file");
    sub->add_flag("--json", options->as_json, "As JSON");
  }
}

}  // namespace infernex::nodes
