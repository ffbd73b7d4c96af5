#include "nodes/prompt_question.hpp"

#include <fstream>
#include <sstream>

#include <CLI/CLI.hpp>
#include <boost/json.hpp>

#include "actors/indexer/index_name.hpp"
#include "actors/indexer/kv_text.hpp"
#include "nodes/fetch.hpp"

namespace infernex::nodes {

namespace {

using namespace std::chrono_literals;
namespace json = boost::json;

constexpr auto timeout = 10s;

result<std::string> content_of(const std::string& file) {
  std::ifstream in(file, std::ios::binary);
  std::ostringstream text;
  if (!in || !(text << in.rdbuf())) return error{errc::not_found, file + " (is it there, and not empty?)"};
  return text.str();
}

result<json::value> json_of(const std::string& file) {
  const auto text = content_of(file);
  if (!text) return text.failure();
  boost::system::error_code problem;
  auto value = json::parse(*text, problem);
  if (problem) return error{errc::malformed_input, file + ": " + problem.message()};
  return value;
}

error name_model(const prompt_question& prompt, json::object& question) {
  if (prompt.model.empty()) {
    const auto page = fetch("GET", prompt.url, "/sources", {}, timeout);
    if (!page) return page.failure();
    const auto model = indexer::only_model(*page);
    if (!model) return model.failure();
    // Sources are listed by the names of their indexes.
    const auto names = indexer::split_index_name(*model);
    question["model"] = names.model;
    question["tenant"] = names.tenant;
  } else if (const auto names = indexer::split_index_name(prompt.model); prompt.tenant.empty()) {
    question["model"] = names.model;  // as `kv top` shows it
    question["tenant"] = names.tenant;
  } else {
    question["model"] = prompt.model;
  }
  return {};
}

error put_prompt(const prompt_question& prompt, json::object& question) {
  if (!prompt.token_file.empty() || prompt.messages) {
    auto list = json_of(prompt.token_file.empty() ? prompt.prompt_file : prompt.token_file);
    if (!list) return list.failure();
    question[prompt.token_file.empty() ? "messages" : "token_ids"] = *std::move(list);
    return {};
  }
  auto text = content_of(prompt.prompt_file);
  if (!text) return text.failure();
  question["prompt"] = *std::move(text);
  return {};
}

}  // namespace

void add_prompt_options(CLI::App& command, prompt_question& into) {
  auto* given = command.add_option_group("prompt");
  given->add_option("--prompt-file", into.prompt_file, "The prompt's text");
  given->add_option("--token-ids", into.token_file, "The prompt's token ids, a JSON list");
  given->require_option(0, 1);
  command.add_flag("--messages", into.messages, "The prompt file holds a JSON list of chat messages");
  command.add_option("--model", into.model, "May be left out if the index knows only one");
  command.add_option("--tenant", into.tenant, "Tenant of the model");
  command.add_option("--lora-name", into.adapter, "Adapter");
  command.add_option("--cache-salt", into.salt, "Cache salt of the request");
}

result<std::string> ask_about(const prompt_question& prompt) {
  if (prompt.prompt_file.empty() && prompt.token_file.empty())
    return error{errc::invalid_request, "name a prompt: --prompt-file FILE or --token-ids FILE"};
  json::object question;
  question["explain"] = true;
  if (auto problem = put_prompt(prompt, question); problem.code != errc::none) return problem;
  if (auto problem = name_model(prompt, question); problem.code != errc::none) return problem;
  if (!prompt.tenant.empty()) question["tenant"] = prompt.tenant;
  if (!prompt.adapter.empty()) question["lora_name"] = prompt.adapter;
  if (!prompt.salt.empty()) question["cache_salt"] = prompt.salt;
  return fetch("POST", prompt.url, "/match_sort", json::serialize(question), timeout);
}

}  // namespace infernex::nodes
