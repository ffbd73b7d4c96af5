#include <unistd.h>

#include <iostream>
#include <thread>

#include <CLI/CLI.hpp>

#include "actors/indexer/kv_text.hpp"
#include "nodes/commands.hpp"
#include "nodes/fetch.hpp"
#include "nodes/prompt_question.hpp"

namespace infernex::nodes {

namespace {

using namespace std::chrono_literals;

constexpr auto timeout = 10s;

struct kv_options {
  prompt_question prompt;
  bool as_json = false;
  bool once = false;
  double interval = 1;
};

int fail(const error& problem) {
  std::cerr << "infernex kv: " << render(problem) << '\n';
  return 1;
}

int top(const kv_options& how) {
  const bool is_terminal = ::isatty(STDOUT_FILENO) != 0;
  for (;;) {
    const auto page = fetch("GET", how.prompt.url, "/sources", {}, timeout);
    if (!page) return fail(page.failure());
    const auto text = how.as_json ? result<std::string>(*page + '\n') : indexer::top_text(*page);
    if (!text) return fail(text.failure());
    if (is_terminal && !how.once && !how.as_json) std::cout << "\x1b[H\x1b[2J";
    std::cout << *text << std::flush;
    if (how.once || !std::cout) return 0;
    std::this_thread::sleep_for(std::chrono::duration<double>(how.interval));
  }
}

int explain(const kv_options& how) {
  const auto answer = ask_about(how.prompt);
  if (!answer) return fail(answer.failure());
  const auto text = how.as_json ? result<std::string>(*answer + '\n') : indexer::explain_text(*answer);
  if (!text) return fail(text.failure());
  std::cout << *text;
  return 0;
}

}  // namespace

void add_kv(CLI::App& app, action& chosen) {
  auto* command = app.add_subcommand("kv", "What the KV index knows");
  command->require_subcommand(1);
  auto options = std::make_shared<kv_options>();
  const auto add = [&](const char* name, const char* help, int (*run)(const kv_options&)) {
    auto* sub = command->add_subcommand(name, help);
    sub->add_option("--url", options->prompt.url, "HTTP address of an indexer")->capture_default_str();
    sub->add_flag("--json", options->as_json, "As JSON");
    sub->callback([options, run, &chosen] { chosen = [options, run] { return run(*options); }; });
    return sub;
  };
  auto* table = add("top", "Models and instances, their blocks, memory, exactness and age", top);
  table->add_flag("--once", options->once, "Print once and end");
  table->add_option("--interval", options->interval, "Seconds between two tables")
      ->capture_default_str()
      ->check(CLI::Range(0.1, 3600.0));
  auto* why = add("explain", "Which instance holds how much of a prompt, and why no more", explain);
  add_prompt_options(*why, options->prompt);
}

}  // namespace infernex::nodes
