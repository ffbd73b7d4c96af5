#include "actors/router/policy_rows.hpp"

namespace infernex::router {

namespace {

using plugins = std::vector<scheduler_spec::plugin>;
using uses = std::vector<scheduler_spec::use>;

/// A profile that chooses the engine that answers, and one for the engine that computes the prompt.
scheduler_spec two_profiles(std::string name, plugins all, uses decode, uses prefill) {
  scheduler_spec spec;
  spec.name = std::move(name);
  spec.plugins = std::move(all);
  spec.plugins.push_back(
      {"pairs", "disagg-profile-handler", {{"deciders", {{"prefill", "always-disagg-pd-decider"}}}}});
  spec.profiles = {{"decode", std::move(decode)}, {"prefill", std::move(prefill)}};
  return spec;
}

/// Engines that do all and pairs by one cost, and decode engines alone, unless they are to decode only.
scheduler_spec infernex_by(std::string name, const policy& how, bool prefill_on_decode) {
  scheduler_spec spec;
  spec.name = std::move(name);
  spec.plugins = {{"room", "decode-room-filter", {}},
                  {"latency",
                   "predicted-latency-scorer",
                   {{"host", how.tiers.host}, {"disk", how.tiers.disk}, {"prefillOnDecode", prefill_on_decode}}},
                  {"least", "picker-min-random", {}},
                  {"pairs", "least-cost-pair-handler", {{"deciders", {{"prefill", "latency"}}}}}};
  spec.profiles = {{"decode", {{"room"}, {"latency"}, {"least"}}}, {"prefill", {{"latency"}, {"least"}}}};
  return spec;
}

scheduler_spec infernex(const policy& how) { return infernex_by("infernex", how, true); }

scheduler_spec infernex_apart(const policy& how) { return infernex_by("infernex-pd", how, false); }

scheduler_spec least_load_apart(const policy& how) {
  const uses both{
      {"kv-usage", how.weight_kv_usage}, {"waiting", how.weight_waiting}, {"in-flight", how.weight_in_flight}};
  return two_profiles("least-load-pd",
                      {{"kv-usage", "kv-cache-utilization-scorer", {}},
                       {"waiting", "waiting-scorer", {}},
                       {"in-flight", "in-flight-scorer", {}}},
                      both, both);
}

scheduler_spec random_apart(const policy&) {
  return two_profiles("random-pd", {{"any", "random-picker", {}}}, {{"any"}}, {{"any"}});
}

scheduler_spec round_robin_apart(const policy&) {
  return two_profiles("round-robin-pd", {{"turn", "round-robin-picker", {}}}, {{"turn"}}, {{"turn"}});
}

scheduler_spec dynamo_apart(const policy&) {
  return two_profiles("dynamo-pd",
                      {{"prefill-cost", "dynamo-cost-scorer", {}},
                       {"decode-cost", "dynamo-cost-scorer", {{"overlapScoreCredit", 0}, {"prefillLoadScale", 0}}},
                       {"least", "dynamo-softmax-picker", {}}},
                      {{"decode-cost"}, {"least"}}, {{"prefill-cost"}, {"least"}});
}

scheduler_spec llm_d_apart(const policy&) {
  return two_profiles("llm-d-pd",
                      {{"prefill-only", "prefill-filter", {}},
                       {"decode-only", "decode-filter", {}},
                       {"prefix", "prefix-cache-scorer", {}},
                       {"load", "load-aware-scorer", {}},
                       {"active", "active-request-scorer", {}}},
                      {{"decode-only"}, {"prefix", 2.0}, {"load"}, {"active"}},
                      {{"prefill-only"}, {"prefix", 2.0}, {"load"}, {"active"}});
}

scheduler_spec kthena_apart(const policy&) {
  return two_profiles("kthena-pd",
                      {{"least-request", "least-request-scorer", {}},
                       {"least-latency", "least-latency-scorer", {}},
                       {"prefix-cache", "overlap-scorer", {{"device", 1}, {"host", 1}, {"disk", 1}}}},
                      {{"least-request"}, {"least-latency"}, {"prefix-cache"}},
                      {{"least-request"}, {"least-latency"}, {"prefix-cache"}});
}

/// openFuyao's form: one profile for both, and a handler that makes pairs of one group.
scheduler_spec openfuyao_apart(std::string name, plugins own) {
  uses all{{"group"}};
  for (const auto& plugin : own) all.push_back({plugin.name});
  plugins every{{"group", "filter-by-pd-label", {}}, {"pairs", "pd-header-handler", {}}};
  every.insert(every.end(), own.begin(), own.end());
  auto spec = one_profile(std::move(name), std::move(every), std::move(all));
  return spec;
}

scheduler_spec pd_bucket(const policy&) { return openfuyao_apart("pd-bucket", {{"bucket", "scorer-pd-bucket", {}}}); }

scheduler_spec pd_bucket_random(const policy&) {
  return openfuyao_apart("pd-bucket-random", {{"bucket", "scorer-pd-bucket", {{"mode", "random"}}}});
}

scheduler_spec pd_kv_aware(const policy&) {
  return openfuyao_apart("pd-kv-aware",
                         {{"cost", "scorer-pd-kv-cache-aware", {}}, {"least", "picker-pd-kv-cache-aware", {}}});
}

/// openFuyao's and the Gateway API Inference Extension's own choices for engines that do all.
scheduler_spec openfuyao(const policy&) {
  return one_profile("openfuyao-kv-aware",
                     {{"cost", "scorer-aggregate-kv-cache-aware", {}}, {"least", "picker-min-random", {}}},
                     {{"cost"}, {"least"}});
}

scheduler_spec gie(const policy&) {
  return one_profile(
      "gie-default",
      {{"queue", "queue-scorer", {}}, {"kv", "kv-cache-utilization-scorer", {}}, {"prefix", "prefix-cache-scorer", {}}},
      {{"queue", 2.0}, {"kv", 2.0}, {"prefix", 3.0}});
}

scheduler_spec llm_d(const policy&) {
  return one_profile("llm-d",
                     {{"prefix", "precise-prefix-cache-scorer", {}},
                      {"load", "load-aware-scorer", {}},
                      {"active", "active-request-scorer", {}},
                      {"tokens", "token-load-scorer", {}},
                      {"cold", "no-hit-lru-scorer", {}}},
                     {{"prefix", 2.0}, {"load"}, {"active"}, {"tokens"}, {"cold"}});
}

constexpr strategy_row rows[] = {
    {"dynamo-pd", dynamo_apart},
    {"gie-default", gie},
    {"infernex", infernex},
    {"infernex-pd", infernex_apart},
    {"kthena-pd", kthena_apart},
    {"least-load-pd", least_load_apart},
    {"llm-d", llm_d},
    {"llm-d-pd", llm_d_apart},
    {"openfuyao-kv-aware", openfuyao},
    {"pd-bucket", pd_bucket},
    {"pd-bucket-random", pd_bucket_random},
    {"pd-kv-aware", pd_kv_aware},
    {"random-pd", random_apart},
    {"round-robin-pd", round_robin_apart},
};

}  // namespace

std::span<const strategy_row> apart_strategies() { return rows; }

}  // namespace infernex::router
