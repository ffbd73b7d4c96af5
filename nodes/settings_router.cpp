#include "actors/router/picker_config.hpp"
#include "nodes/settings.hpp"

namespace infernex::nodes {

using namespace std::chrono_literals;

namespace {

/// The name that v25.09's charts have for it besides.
constexpr std::string_view round_robin_polling = "round-robin polling";

void read_strategy(config::section& at, router::policy& into) {
  auto words = router::strategies();
  words.push_back(round_robin_polling);
  at.read_choice("strategy", into.strategy, words);
  if (into.strategy == round_robin_polling) into.strategy = "round-robin";
}

/// `config: FILE`: what else is said of the policy would be without effect.
void read_policy_file(config::section& at, router::policy& into) {
  std::string file;
  at.read("config", file);
  for (const auto* key :
       {"strategy", "weight_overlap", "weight_kv_usage", "weight_waiting", "weight_in_flight", "tier_weights"})
    if (at.has(key)) at.complain(key, "without effect: `config` takes its place");
  file = at.beside(file);
  auto read = router::load_picker_config(file);
  at.adopt(read.mistakes);
  into.config = std::move(read.spec);
  into.source = router::policy_source{file, read.stamp, std::move(read.remarks)};
}

}  // namespace

void read_queue(config::section at, router::queue_settings& into) {
  at.read("enabled", into.enabled)
      .read("max_requests", into.max_requests, 1, 1'000'000)
      .read("max_wait", into.max_wait, 10ms, 1h)
      .read("queue_depth", into.saturated.queue_depth, 1, 1'000'000)
      .read("kv_usage", into.saturated.kv_usage, 0.01, 1)
      .read("max_concurrency", into.saturated.max_concurrency, 0, 1'000'000);
  boost::json::object objectives;
  at.read("objectives", objectives);
  for (const auto& [name, value] : objectives) {
    const auto* priority = value.if_int64();
    if (priority && *priority >= -router::most_priority && *priority <= router::most_priority)
      into.objectives[std::string(name)] = static_cast<std::int32_t>(*priority);
    else
      at.complain_below("objectives." + std::string(name), "a priority: a number between -1000000 and 1000000");
  }
}

void read_policy(config::section at, router::policy& into) {
  read_queue(at.below("queue"), into.queue);
  at.read("runners_up", into.runners_up, 0, 16);
  if (at.has("config")) return read_policy_file(at, into);
  read_strategy(at, into);
  at.read("weight_overlap", into.weight_overlap, 0, 1000)
      .read("weight_kv_usage", into.weight_kv_usage, 0, 1000)
      .read("weight_waiting", into.weight_waiting, 0, 1000)
      .read("weight_in_flight", into.weight_in_flight, 0, 1000);
  at.below("tier_weights")
      .read("device", into.tiers.device, 0, 1)
      .read("host", into.tiers.host, 0, 1)
      .read("disk", into.tiers.disk, 0, 1);
}

void read_prediction(config::section at, router::prediction_settings& into) {
  at.read("enabled", into.enabled)
      .read("ttl", into.ttl, 100ms, 24h)
      .read("speculative_ttl", into.speculative_ttl, 10ms, 10min)
      .read("max_blocks_per_instance", into.max_blocks_per_instance, 1, 16'777'216)
      .read_bytes("max_bytes", into.max_bytes, 1 << 20, 64ULL << 30);
}

namespace {

void read_verdicts(config::section at, router::fleet_settings& into) {
  using router::verdict_use;
  at.read_choice("use", into.verdicts, {{"act", verdict_use::act}, {"show", verdict_use::show}});
  at.read("max_isolated_share", into.max_isolated_share, 0, 1)
      .read("degraded_score", into.degraded_score, 0.01, 1)
      .read("silence", into.verdict_silence, 10s, 24h);
}

}  // namespace

void read_fleet(config::section at, router::fleet_settings& into) {
  at.read("silence", into.silence, 500ms, 10min)
      .read("forget", into.forget, 1s, 24h)
      .read("life_silence", into.life_silence, 500ms, 10min)
      .read("max_engines", into.max_engines, 1, 65'536)
      .read("max_gateways", into.max_gateways, 1, 65'536);
  read_verdicts(at.below("verdicts"), into);
}

void read_router(config::section at, router::settings& into, std::optional<std::chrono::milliseconds> route_timeout) {
  if (at.has("strategy")) {  // as v25.09's charts have it
    if (at.has("policy")) at.complain("strategy", "given twice: here and by `policy`");
    read_strategy(at, into.policy);
  }
  read_policy(at.below("policy"), into.policy);
  read_fleet(at.below("fleet"), into.fleet);
  read_prediction(at.below("prediction"), into.prediction);
  read_kvmanager(at, into.kvmanager, route_timeout);
  at.read("match_timeout", into.match_timeout, 1ms, 10s)
      .read("max_pending", into.max_pending, 1, 1'000'000)
      .read("max_items", into.max_items, 64, 65'536)
      .read("query_credit", into.query_credit, 1, 1'000'000)
      .read("fact_credit", into.fact_credit, 1, 1'000'000)
      .read("max_reservations", into.reservations.max_open, 1, 10'000'000)
      .read("reservation_expiry", into.reservations.expiry, 100ms, 10min)
      .read("admin_address", into.admin_address)
      .read("admin_port", into.admin_port, 0, 65'535);
}

}  // namespace infernex::nodes
