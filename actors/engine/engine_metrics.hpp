#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "messages/registry.hpp"
#include "messages/result.hpp"

namespace infernex::engine {

/// What a metric of an engine tells us.
enum class metric_meaning : std::uint8_t {
  running,
  waiting,
  /// Share of KV blocks in use, 0..1.
  kv_usage,
  /// Counters, in tokens, since the engine started.
  prompt_tokens,
  generation_tokens,
  prefix_cache_queries,
  prefix_cache_hits,
  /// The same of a cache outside the engine (a KV connector's).
  external_cache_queries,
  external_cache_hits,
  /// Requests that gave up their blocks and begin anew.
  preemptions,
  /// Seconds since 1970 at which the engine's process started.
  process_start,
  /// Tokens a KV block, and the number of blocks; usually labels of an info metric.
  block_size,
  total_blocks,
  /// Labels that hold text: of the series that are not 0, the one that says sleep_state; of the newest series (its
  /// value is its time), names of LoRA adapters separated by commas, and how many fit.
  sleep_state,
  running_adapters,
  waiting_adapters,
  max_adapters,
  count_
};

/// Where to find a meaning: a metric's value, or one of its labels.
struct metric_source {
  std::string metric;
  metric_meaning meaning = metric_meaning::running;
  /// Empty: the metric's value.
  std::string label;

  friend bool operator==(const metric_source&, const metric_source&) = default;
};

/// The names of vLLM (V1 and V0) and SGLang. Of several sources of one meaning, the first that the page has
/// is used, so that newer names come before older ones.
const std::vector<metric_source>& default_metric_sources();

/// `running`, `kv_usage` …, as configuration spells them.
std::optional<metric_meaning> metric_meaning_of(std::string_view name);

/// Whether an engine's weights and cache are in place. One that sleeps answers health probes, but no request.
enum class sleep_state : std::uint8_t { awake, weights_offloaded, discard_all };

/// What one metrics page said; what it did not say is unset. A page of several engines behind one port
/// (data parallelism) is summed up, unless one rank of them is asked for; kv_usage is their mean, the deepest
/// sleep counts, and of adapters the newest series.
struct engine_metrics {
  std::optional<std::uint32_t> running;
  std::optional<std::uint32_t> waiting;
  std::optional<double> kv_usage;
  std::optional<std::uint64_t> prompt_tokens;
  std::optional<std::uint64_t> generation_tokens;
  std::optional<std::uint64_t> prefix_cache_queries;
  std::optional<std::uint64_t> prefix_cache_hits;
  std::optional<std::uint64_t> external_cache_queries;
  std::optional<std::uint64_t> external_cache_hits;
  std::optional<std::uint64_t> preemptions;
  std::optional<double> process_start_seconds;
  std::optional<std::uint32_t> block_size;
  std::optional<std::uint64_t> total_blocks;
  std::optional<engine::sleep_state> sleep_state;
  std::optional<std::vector<std::string>> running_adapters;
  std::optional<std::vector<std::string>> waiting_adapters;
  std::optional<std::uint32_t> max_adapters;
  /// Lines that are no Prometheus text.
  std::uint32_t bad_lines = 0;
};

/// Largest metrics page read, in bytes.
inline constexpr std::size_t max_metrics_bytes = 8 << 20;

/// Reads a page in Prometheus text format. Bad lines are counted and skipped. `rank`: leaves out series whose
/// label `engine` says another data-parallel rank; those without the label are of all. Errors: too_large.
result<engine_metrics> read_metrics(std::string_view page, const std::vector<metric_source>& sources,
                                    std::optional<std::uint32_t> rank = {});

/// The load to be published, without origin and names: rates are since `before` (null: none), `seconds`
/// earlier; a counter that went backwards gives no rate.
fb::EngineLoadT load_of(const engine_metrics& now, const engine_metrics* before, double seconds);

}  // namespace infernex::engine
