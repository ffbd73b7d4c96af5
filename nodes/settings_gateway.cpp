#include "gateway/routing_headers.hpp"
#include "nodes/settings.hpp"

namespace infernex::nodes {

using namespace std::chrono_literals;

namespace {

void read_tokens(config::section at, gateway::token_settings& into) {
  static const std::vector<std::pair<std::string_view, gateway::token_step>> steps{
      {"render", gateway::token_step::render},
      {"tokenize", gateway::token_step::tokenize},
      {"text", gateway::token_step::text}};
  std::vector<std::string> chain;
  at.read("chain", chain);
  if (!chain.empty()) into.chain.clear();
  for (const auto& word : chain) {
    bool known = false;
    for (const auto& [name, step] : steps)
      if (word == name) {
        into.chain.push_back(step);
        known = true;
      }
    if (!known) at.complain("chain", "a list of render, tokenize, text; not \"" + word + "\"");
  }
  at.read("render_timeout", into.render_timeout, 1ms, 60s)
      .read("tokenize_timeout", into.tokenize_timeout, 1ms, 60s)
      .read("absent_for", into.absent_for, 1s, 1h)
      .read("failed_for", into.failed_for, 10ms, 1h)
      .read_bytes("cache_bytes", into.cache_bytes, 0, 16ULL << 30)
      .read_bytes("max_answer_bytes", into.max_answer_bytes, 1 << 10, 1ULL << 30);
}

void read_routing_headers(config::section& at, std::vector<std::string>& into) {
  constexpr std::size_t most = 32;
  std::vector<std::string> names;
  at.read("routing_headers", names);
  if (names.size() > most) at.complain("routing_headers", "at most " + std::to_string(most) + " of them");
  for (const auto& name : names)
    if (!gateway::usable_header_name(name))
      at.complain("routing_headers", "names of headers, at most 64 letters, digits and hyphens; not \"" + name + "\"");
  into = std::move(names);
}

}  // namespace

void read_gateway(config::section at, gateway::settings& into) {
  at.read("address", into.address)
      .read("port", into.port, 0, 65'535)
      .read("threads", into.threads, 0, 256)
      .read_bytes("max_body_bytes", into.max_body_bytes, 1 << 10, 1ULL << 30)
      .read_bytes("max_answer_bytes", into.max_answer_bytes, 1 << 10, 4ULL << 30)
      .read_choice("router", into.router,
                   {{"bus", gateway::router_mode::bus}, {"embedded", gateway::router_mode::embedded}})
      .read("url", into.url)
      .read_choice("pd", into.pd, {{"proxy", gateway::pd_mode::proxy}, {"embedded", gateway::pd_mode::embedded}})
      .read_choice("router_affinity", into.router_affinity, {{"model", true}, {"none", false}})
      .read("route_timeout", into.route_timeout, 1ms, 10s)
      .read("timeout", into.timeout, 100ms, 24h)
      .read("stream_idle_timeout", into.stream_idle_timeout, 100ms, 24h)
      .read("connect_timeout", into.connect_timeout, 10ms, 60s)
      .read("max_in_flight", into.max_in_flight, 1, 1'000'000)
      .read("max_attempts", into.max_attempts, 1, 16)
      .read("backoff_first", into.backoff_first, 10ms, 10min)
      .read("backoff_most", into.backoff_most, 10ms, 1h)
      .read("life_interval", into.life_interval, 1ms, 1s);
  if (!into.url.empty() && !into.url.starts_with("http://")) at.complain("url", "must start with http://");
  read_policy(at.below("policy"), into.policy);
  read_routing_headers(at, into.routing_headers);
  read_fleet(at.below("fleet"), into.fleet);
  read_prediction(at.below("prediction"), into.prediction);
  at.below("breaker")
      .read("timeouts", into.breaker.timeouts, 1, 1'000)
      .read("first_pause", into.breaker.first_pause, 10ms, 10min)
      .read("most_pause", into.breaker.most_pause, 10ms, 10min);
  at.below("parity")
      .read("threshold", into.parity.threshold, 0.01, 1)
      .read("requests", into.parity.requests, 1, 1'000'000);
  read_tokens(at.below("tokens"), into.tokens);
}

}  // namespace infernex::nodes
