#include <charconv>
#include <fstream>
#include <future>
#include <iostream>
#include <sstream>

#include <CLI/CLI.hpp>
#include <boost/json.hpp>

#include "actors/indexer/index_name.hpp"
#include "actors/router/explain_text.hpp"
#include "actors/runtime/bus.hpp"
#include "actors/runtime/log.hpp"
#include "actors/runtime/metrics.hpp"
#include "messages/decode.hpp"
#include "nodes/commands.hpp"
#include "nodes/prompt_question.hpp"

namespace infernex::nodes {

namespace {

using namespace std::chrono_literals;
namespace json = boost::json;

constexpr auto timeout = 5s;

struct route_options {
  prompt_question prompt;
  bus_settings bus;
  std::uint32_t max_tokens = 0;
  std::string snapshot, save;
  bool as_json = false;
};

int fail(const error& problem) {
  std::cerr << "infernex route: " << render(problem) << '\n';
  return 1;
}

std::uint64_t key_of(const json::value& hex) {
  const std::string_view digits = hex.as_string();
  std::uint64_t key = 0;
  std::from_chars(digits.data(), digits.data() + digits.size(), key, 16);
  return key;
}

/// The router's question, of the indexer's answer, which has the prompt's keys. Errors: malformed_input.
result<fb::RouteQueryT> query_of(std::string_view about_prompt, const route_options& how) {
  try {
    const auto answer = json::parse({about_prompt.data(), about_prompt.size()});
    fb::RouteQueryT query;
    query.origin = std::make_unique<fb::OriginT>();
    query.origin->id = "route-explain";
    query.explain = true;
    const std::string_view model = answer.at("model").as_string();
    query.model = indexer::index_name(model, answer.at("tenant").as_string()).value_or(std::string(model));
    auto& item = *query.items.emplace_back(std::make_unique<fb::RouteItemT>());
    item.request_id = "explain";
    item.adapter = how.prompt.adapter;
    item.key_mode = fb::KeyMode::Token;
    item.prompt_tokens = answer.at("prompt_tokens").to_number<std::uint32_t>();
    item.block_size = answer.at("block_size").to_number<std::uint32_t>();
    if (how.max_tokens != 0) item.max_tokens = how.max_tokens;
    for (const auto& key : answer.at("block_keys").as_array()) item.keys.push_back(key_of(key));
    return query;
  } catch (const std::exception& problem) {
    return error{errc::malformed_input, std::string("the indexer's answer: ") + problem.what()};
  }
}

/// A live router's decision as JSON. Errors: those of the bus, of the indexer, and the router's.
result<std::string> ask_router(const route_options& how) {
  const auto about_prompt = ask_about(how.prompt);
  if (!about_prompt) return about_prompt.failure();
  const auto query = query_of(*about_prompt, how);
  if (!query) return query.failure();
  metrics_registry metrics;
  auto settings = how.bus;
  settings.client_name = "infernex-route";
  auto connection = bus::connect(settings, metrics);
  if (!connection) return connection.failure();
  auto done = std::make_shared<std::promise<result<std::string>>>();
  auto answer = done->get_future();
  auto& messages = **connection;
  messages.request<fb::RouteDecision>(
      messages.names().route_query(query->model), encode(*query), timeout,
      [done](result<view<fb::RouteDecision>>&& reply) {
        done->set_value(reply ? decode_to_json(reply->data().bytes()) : result<std::string>(reply.failure()));
      });
  auto decided = answer.get();
  messages.close(2s);
  if (!decided && decided.failure().code == errc::unreachable)
    return error{errc::unreachable, "no router is on the bus"};
  return decided;
}

result<std::string> saved(const std::string& file) {
  std::ifstream in(file, std::ios::binary);
  std::ostringstream text;
  if (!in || !(text << in.rdbuf())) return error{errc::not_found, file + " (is it there, and not empty?)"};
  return text.str();
}

int explain(const route_options& how) {
  log::configure(log::level::warn, "route");
  const auto decision = how.snapshot.empty() ? ask_router(how) : saved(how.snapshot);
  if (!decision) return fail(decision.failure());
  const auto text = router::explain_text(*decision);
  if (!text) return fail(text.failure());
  if (!how.save.empty() && !(std::ofstream(how.save, std::ios::binary) << *decision << '\n' << std::flush))
    return fail({errc::system_error, how.save + " cannot be written"});
  std::cout << (how.as_json ? *decision + '\n' : *text);
  return 0;
}

}  // namespace

void add_route(CLI::App& app, action& chosen) {
  auto* command = app.add_subcommand("route", "Where requests go, and why");
  command->require_subcommand(1);
  auto options = std::make_shared<route_options>();
  auto* why =
      command->add_subcommand("explain", "Every engine, its filters and scores, and which one a prompt goes to");
  add_prompt_options(*why, options->prompt);
  why->add_option("--max-tokens", options->max_tokens, "Of the request; 0: it says none");
  why->add_option("--nats", options->bus.url, "NATS server, by which a router is asked")->capture_default_str();
  why->add_option("--prefix", options->bus.prefix, "First tokens of every subject")->capture_default_str();
  why->add_option("--url", options->prompt.url, "HTTP address of an indexer, which has the prompt made into keys")
      ->capture_default_str();
  why->add_option("--snapshot", options->snapshot, "Ask nobody: a file that --save wrote, or a line of `infernex sub`");
  why->add_option("--save", options->save, "Keep the answer in this file");
  why->add_flag("--json", options->as_json, "As JSON");
  why->callback([options, &chosen] { chosen = [options] { return explain(*options); }; });
}

}  // namespace infernex::nodes
