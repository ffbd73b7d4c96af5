#include "actors/router/policy_rows.hpp"

namespace infernex::router {

namespace {

/// A strategy that is one picker, with its defaults.
scheduler_spec one_picker(std::string name, std::string type) {
  return one_profile(std::move(name), {{"picker", std::move(type), {}}}, {{"picker"}});
}

scheduler_spec aibrix_prefix_cache(const policy&) {
  return one_picker("aibrix-prefix-cache", "aibrix-prefix-cache-picker");
}
scheduler_spec consistent_hashing(const policy&) {
  return one_picker("consistent-hashing", "consistent-hashing-picker");
}
scheduler_spec power_of_two(const policy&) { return one_picker("power-of-two", "power-of-two-picker"); }
scheduler_spec prefix_hash(const policy&) { return one_picker("prefix-hash", "prefix-hash-picker"); }
scheduler_spec sglang_cache_aware(const policy&) {
  return one_picker("sglang-cache-aware", "sglang-cache-aware-picker");
}

scheduler_spec dynamo(const policy&) {
  return one_profile("dynamo", {{"cost", "dynamo-cost-scorer", {}}, {"least", "dynamo-softmax-picker", {}}},
                     {{"cost"}, {"least"}});
}

/// Its default plugins. Its prefix cache has no tiers: a cached block is a cached block.
scheduler_spec kthena(const policy&) {
  return one_profile("kthena",
                     {{"limit", "least-request-filter", {}},
                      {"least-request", "least-request-scorer", {}},
                      {"least-latency", "least-latency-scorer", {}},
                      {"prefix-cache", "overlap-scorer", {{"device", 1}, {"host", 1}, {"disk", 1}}}},
                     {{"limit"}, {"least-request"}, {"least-latency"}, {"prefix-cache"}});
}

scheduler_spec production_stack(const policy&) {
  return one_profile("production-stack", {{"load-aware-prefix", "load-aware-prefix-scorer", {}}},
                     {{"load-aware-prefix"}});
}

scheduler_spec smg_least_load(const policy&) {
  return one_profile("smg-least-load", {{"drain", "least-load-drain-scorer", {}}, {"least", "picker-min-random", {}}},
                     {{"drain"}, {"least"}});
}

constexpr strategy_row rows[] = {
    {"aibrix-prefix-cache", aibrix_prefix_cache},
    {"consistent-hashing", consistent_hashing},
    {"dynamo", dynamo},
    {"kthena", kthena},
    {"power-of-two", power_of_two},
    {"prefix-hash", prefix_hash},
    {"production-stack", production_stack},
    {"sglang-cache-aware", sglang_cache_aware},
    {"smg-least-load", smg_least_load},
};

}  // namespace

std::span<const strategy_row> peer_strategies() { return rows; }

}  // namespace infernex::router
