#include <unistd.h>

#include <fstream>
#include <iostream>
#include <sstream>
#include <thread>

#include <CLI/CLI.hpp>
#include <boost/json.hpp>

#include "actors/indexer/index_name.hpp"
#include "actors/indexer/kv_text.hpp"
#include "nodes/commands.hpp"
#include "nodes/fetch.hpp"

namespace infernex::nodes {

namespace {

using namespace std::chrono_literals;
namespace json = boost::json;

constexpr auto timeout = 10s;

struct kv_options {
  std::string url = "http://127.0.0.1:8080";
  bool as_json = false;
  bool once = false;
  double interval = 1;
  std::string model, tenant, adapter, salt, prompt_file;
  bool messages = false;
};

int fail(const error& problem) {
  std::cerr << "infernex kv: " << render(problem) << '\n';
  return 1;
}

int top(const kv_options& how) {
  const bool is_terminal = ::isatty(STDOUT_FILENO) != 0;
  for (;;) {
    const auto page = fetch("GET", how.url, "/sources", {}, timeout);
    if (!page) return fail(page.failure());
    const auto text = how.as_json ? result<std::string>(*page + '\n') : indexer::top_text(*page);
    if (!text) return fail(text.failure());
    if (is_terminal && !how.once && !how.as_json) std::cout << "\x1b[H\x1b[2J";
    std::cout << *text << std::flush;
    if (how.once || !std::cout) return 0;
    std::this_thread::sleep_for(std::chrono::duration<double>(how.interval));
  }
}

/// The question of `kv explain`. Errors: not_found (the file), malformed_input (messages that are no JSON), and those
/// of only_model.
result<std::string> question_of(const kv_options& how) {
  std::ifstream file(how.prompt_file, std::ios::binary);
  std::ostringstream prompt;
  if (!file || !(prompt << file.rdbuf()))
    return error{errc::not_found, how.prompt_file + " (is it there, and not empty?)"};
  json::object question;
  question["explain"] = true;
  if (how.model.empty()) {
    const auto page = fetch("GET", how.url, "/sources", {}, timeout);
    if (!page) return page.failure();
    const auto model = indexer::only_model(*page);
    if (!model) return model.failure();
    // Sources are listed by the names of their indexes.
    const auto names = indexer::split_index_name(*model);
    question["model"] = names.model;
    question["tenant"] = names.tenant;
  } else if (const auto names = indexer::split_index_name(how.model); how.tenant.empty()) {
    question["model"] = names.model;  // as `kv top` shows it
    question["tenant"] = names.tenant;
  } else {
    question["model"] = how.model;
  }
  if (!how.tenant.empty()) question["tenant"] = how.tenant;
  if (!how.adapter.empty()) question["lora_name"] = how.adapter;
  if (!how.salt.empty()) question["cache_salt"] = how.salt;
  if (how.messages) {
    boost::system::error_code problem;
    question["messages"] = json::parse(prompt.str(), problem);
    if (problem) return error{errc::malformed_input, how.prompt_file + ": " + problem.message()};
  } else {
    question["prompt"] = prompt.str();
  }
  return json::serialize(question);
}

int explain(const kv_options& how) {
  const auto question = question_of(how);
  if (!question) return fail(question.failure());
  const auto answer = fetch("POST", how.url, "/match_sort", *question, timeout);
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
    sub->add_option("--url", options->url, "HTTP address of an indexer")->capture_default_str();
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
  why->add_option("--prompt-file", options->prompt_file, "The prompt's text")->required();
  why->add_flag("--messages", options->messages, "The file holds a JSON list of chat messages");
  why->add_option("--model", options->model, "May be left out if the index knows only one");
  why->add_option("--tenant", options->tenant, "Tenant of the model");
  why->add_option("--lora-name", options->adapter, "Adapter");
  why->add_option("--cache-salt", options->salt, "Cache salt of the request");
}

}  // namespace infernex::nodes
