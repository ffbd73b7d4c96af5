#include "actors/engine/engine_metrics.hpp"

#include <array>
#include <charconv>
#include <cmath>
#include <limits>
#include <unordered_map>

#include "actors/engine/prometheus_text.hpp"

namespace infernex::engine {

namespace {

constexpr std::array<std::string_view, static_cast<std::size_t>(metric_meaning::count_)> meaning_names{
    "running",           "waiting",       "kv_usage",   "prompt_tokens", "generation_tokens", "prefix_cache_queries",
    "prefix_cache_hits", "process_start", "block_size", "total_blocks"};

/// The samples of one source on one page.
struct tally {
  double sum = 0;
  double largest = 0;
  std::uint32_t samples = 0;
};

std::optional<double> number_in(std::string_view text) {
  double number = 0;
  const auto [end, problem] = std::from_chars(text.data(), text.data() + text.size(), number);
  if (text.empty() || problem != std::errc{} || end != text.data() + text.size()) return std::nullopt;
  return number;
}

template <class Integer>
std::optional<Integer> whole(double number) {
  // 2^63: the largest power of two that every conversion below takes.
  constexpr double limit = std::min<double>(static_cast<double>(std::numeric_limits<Integer>::max()), 9.2e18);
  if (!(number >= 0) || number > limit) return std::nullopt;
  return static_cast<Integer>(std::llround(number));
}

void take(engine_metrics& into, metric_meaning meaning, const tally& found) {
  switch (meaning) {
    case metric_meaning::running:
      into.running = whole<std::uint32_t>(found.sum);
      break;
    case metric_meaning::waiting:
      into.waiting = whole<std::uint32_t>(found.sum);
      break;
    case metric_meaning::kv_usage:
      if (const double mean = found.sum / found.samples; mean >= 0 && mean <= 1.0001)
        into.kv_usage = std::min(mean, 1.0);
      break;
    case metric_meaning::prompt_tokens:
      into.prompt_tokens = whole<std::uint64_t>(found.sum);
      break;
    case metric_meaning::generation_tokens:
      into.generation_tokens = whole<std::uint64_t>(found.sum);
      break;
    case metric_meaning::prefix_cache_queries:
      into.prefix_cache_queries = whole<std::uint64_t>(found.sum);
      break;
    case metric_meaning::prefix_cache_hits:
      into.prefix_cache_hits = whole<std::uint64_t>(found.sum);
      break;
    case metric_meaning::process_start:
      if (found.largest > 0) into.process_start_seconds = found.largest;
      break;
    case metric_meaning::block_size:
      if (const auto size = whole<std::uint32_t>(found.largest); size && *size > 0) into.block_size = size;
      break;
    case metric_meaning::total_blocks:
      into.total_blocks = whole<std::uint64_t>(found.sum);
      break;
    case metric_meaning::count_:
      break;
  }
}

std::optional<double> rate(std::optional<std::uint64_t> now, std::optional<std::uint64_t> before, double seconds) {
  if (!now || !before || *now < *before || !(seconds > 0)) return std::nullopt;
  return static_cast<double>(*now - *before) / seconds;
}

}  // namespace

const std::vector<metric_source>& default_metric_sources() {
  using m = metric_meaning;
  static const std::vector<metric_source> sources{
      {"vllm:num_requests_running", m::running, {}},
      {"sglang:num_running_reqs", m::running, {}},
      {"vllm:num_requests_waiting", m::waiting, {}},
      {"sglang:num_queue_reqs", m::waiting, {}},
      {"vllm:kv_cache_usage_perc", m::kv_usage, {}},
      {"vllm:gpu_cache_usage_perc", m::kv_usage, {}},
      {"sglang:token_usage", m::kv_usage, {}},
      {"vllm:prompt_tokens_total", m::prompt_tokens, {}},
      {"sglang:prompt_tokens_total", m::prompt_tokens, {}},
      {"vllm:generation_tokens_total", m::generation_tokens, {}},
      {"sglang:generation_tokens_total", m::generation_tokens, {}},
      {"vllm:prefix_cache_queries_total", m::prefix_cache_queries, {}},
      {"vllm:gpu_prefix_cache_queries_total", m::prefix_cache_queries, {}},
      {"vllm:prefix_cache_hits_total", m::prefix_cache_hits, {}},
      {"vllm:gpu_prefix_cache_hits_total", m::prefix_cache_hits, {}},
      {"process_start_time_seconds", m::process_start, {}},
      {"vllm:cache_config_info", m::block_size, "block_size"},
      {"sglang:cache_config_info", m::block_size, "page_size"},
      {"vllm:cache_config_info", m::total_blocks, "num_gpu_blocks"},
      {"sglang:cache_config_info", m::total_blocks, "num_pages"},
  };
  return sources;
}

std::optional<metric_meaning> metric_meaning_of(std::string_view name) {
  for (std::size_t i = 0; i < meaning_names.size(); ++i)
    if (meaning_names[i] == name) return static_cast<metric_meaning>(i);
  return std::nullopt;
}

result<engine_metrics> read_metrics(std::string_view page, const std::vector<metric_source>& sources) {
  if (page.size() > max_metrics_bytes)
    return error{errc::too_large, "a metrics page of " + std::to_string(page.size()) + " bytes"};
  std::unordered_multimap<std::string_view, std::size_t> wanted;
  for (std::size_t i = 0; i < sources.size(); ++i) wanted.emplace(sources[i].metric, i);
  std::vector<tally> tallies(sources.size());
  engine_metrics found;
  while (!page.empty()) {
    const auto end = page.find('\n');
    auto line = page.substr(0, end);
    page.remove_prefix(end == std::string_view::npos ? page.size() : end + 1);
    if (line.ends_with('\r')) line.remove_suffix(1);
    if (line.empty() || line.front() == '#') continue;
    const auto sample = parse_sample(line);
    if (!sample) {
      ++found.bad_lines;
      continue;
    }
    for (auto [at, last] = wanted.equal_range(sample->metric); at != last; ++at) {
      auto value = std::optional(sample->value);
      if (const auto& label = sources[at->second].label; !label.empty()) {
        // An info metric of a hybrid model may say "None".
        const auto text = find_label(sample->labels, label);
        value = text ? number_in(*text) : std::nullopt;
      }
      if (!value || !std::isfinite(*value)) continue;
      auto& sum = tallies[at->second];
      sum.sum += *value;
      sum.largest = sum.samples++ == 0 ? *value : std::max(sum.largest, *value);
    }
  }
  std::array<bool, static_cast<std::size_t>(metric_meaning::count_)> known{};
  for (std::size_t i = 0; i < sources.size(); ++i) {
    auto& done = known[static_cast<std::size_t>(sources[i].meaning)];
    if (done || tallies[i].samples == 0) continue;
    done = true;
    take(found, sources[i].meaning, tallies[i]);
  }
  return found;
}

fb::EngineLoadT load_of(const engine_metrics& now, const engine_metrics* before, double seconds) {
  fb::EngineLoadT load;
  load.running = now.running;
  load.waiting = now.waiting;
  load.kv_usage = now.kv_usage;
  load.prefix_cache_queries = now.prefix_cache_queries;
  load.prefix_cache_hits = now.prefix_cache_hits;
  if (before != nullptr) {
    load.prompt_tokens_per_second = rate(now.prompt_tokens, before->prompt_tokens, seconds);
    load.generation_tokens_per_second = rate(now.generation_tokens, before->generation_tokens, seconds);
  }
  return load;
}

}  // namespace infernex::engine
