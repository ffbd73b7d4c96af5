#include "actors/engine/engine_metrics.hpp"

#include <algorithm>
#include <array>
#include <charconv>
#include <cmath>
#include <limits>
#include <unordered_map>

#include "actors/engine/prometheus_text.hpp"

namespace infernex::engine {

namespace {

constexpr std::array<std::string_view, static_cast<std::size_t>(metric_meaning::count_)> meaning_names{
    "running",
    "waiting",
    "kv_usage",
    "prompt_tokens",
    "generation_tokens",
    "prefix_cache_queries",
    "prefix_cache_hits",
    "external_cache_queries",
    "external_cache_hits",
    "preemptions",
    "process_start",
    "block_size",
    "total_blocks",
    "sleep_state",
    "running_adapters",
    "waiting_adapters",
    "max_adapters"};

/// Meanings whose label holds text.
bool is_text(metric_meaning meaning) {
  return meaning == metric_meaning::sleep_state || meaning == metric_meaning::running_adapters ||
         meaning == metric_meaning::waiting_adapters;
}

/// The samples of one source on one page.
struct tally {
  double sum = 0;
  double largest = 0;
  std::uint32_t samples = 0;
  /// Of a label with text, or of one in a series that goes by age: what the newest series says.
  double newest = 0;
  std::string text;
};

constexpr std::array<std::string_view, 3> sleep_names{"awake", "weights_offloaded", "discard_all"};

/// The deepest sleep, as a number, of the series that hold.
void add_sleep(tally& sum, double holds, std::string_view state) {
  const auto found = std::ranges::find(sleep_names, state);
  if (!(holds > 0) || found == sleep_names.end()) return;
  sum.largest = std::max(sum.largest, static_cast<double>(found - sleep_names.begin()));
  ++sum.samples;
}

void add_newest(tally& sum, double time, std::string text) {
  if (sum.samples++ > 0 && time < sum.newest) return;
  sum.newest = time;
  sum.text = std::move(text);
}

std::vector<std::string> list_in(std::string_view text) {
  std::vector<std::string> names;
  while (!text.empty()) {
    const auto comma = text.find(',');
    auto name = text.substr(0, comma);
    text.remove_prefix(comma == std::string_view::npos ? text.size() : comma + 1);
    while (name.starts_with(' ')) name.remove_prefix(1);
    while (name.ends_with(' ')) name.remove_suffix(1);
    if (!name.empty()) names.emplace_back(name);
  }
  return names;
}

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
    case metric_meaning::external_cache_queries:
      into.external_cache_queries = whole<std::uint64_t>(found.sum);
      break;
    case metric_meaning::external_cache_hits:
      into.external_cache_hits = whole<std::uint64_t>(found.sum);
      break;
    case metric_meaning::preemptions:
      into.preemptions = whole<std::uint64_t>(found.sum);
      break;
    case metric_meaning::sleep_state:
      into.sleep_state = static_cast<sleep_state>(found.largest);
      break;
    case metric_meaning::running_adapters:
      into.running_adapters = list_in(found.text);
      break;
    case metric_meaning::waiting_adapters:
      into.waiting_adapters = list_in(found.text);
      break;
    case metric_meaning::max_adapters:
      if (const auto most = number_in(found.text)) into.max_adapters = whole<std::uint32_t>(*most);
      break;
    case metric_meaning::count_:
      break;
  }
}

/// Adds one sample to what is known of one source.
void add(tally& sum, const metric_source& source, const prometheus_sample& sample) {
  auto value = std::optional(sample.value);
  if (!source.label.empty()) {
    auto text = find_label(sample.labels, source.label);
    if (!text || !std::isfinite(sample.value)) return;
    if (source.meaning == metric_meaning::sleep_state) return add_sleep(sum, sample.value, *text);
    if (is_text(source.meaning) || source.meaning == metric_meaning::max_adapters)
      return add_newest(sum, sample.value, *std::move(text));
    value = number_in(*text);  // an info metric of a hybrid model may say "None"
  } else if (is_text(source.meaning)) {
    return;
  }
  if (!value || !std::isfinite(*value)) return;
  sum.sum += *value;
  sum.largest = sum.samples++ == 0 ? *value : std::max(sum.largest, *value);
}

bool is_of_rank(const prometheus_sample& sample, std::string_view rank) {
  if (rank.empty()) return true;
  const auto engine = find_label(sample.labels, "engine");
  return !engine || *engine == rank;
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
      {"vllm:external_prefix_cache_queries_total", m::external_cache_queries, {}},
      {"vllm:external_prefix_cache_hits_total", m::external_cache_hits, {}},
      {"vllm:num_preemptions_total", m::preemptions, {}},
      {"process_start_time_seconds", m::process_start, {}},
      {"vllm:cache_config_info", m::block_size, "block_size"},
      {"sglang:cache_config_info", m::block_size, "page_size"},
      {"vllm:cache_config_info", m::total_blocks, "num_gpu_blocks"},
      {"sglang:cache_config_info", m::total_blocks, "num_pages"},
      {"vllm:engine_sleep_state", m::sleep_state, "sleep_state"},
      {"vllm:lora_requests_info", m::running_adapters, "running_lora_adapters"},
      {"vllm:lora_requests_info", m::waiting_adapters, "waiting_lora_adapters"},
      {"vllm:lora_requests_info", m::max_adapters, "max_lora"},
  };
  return sources;
}

std::optional<metric_meaning> metric_meaning_of(std::string_view name) {
  for (std::size_t i = 0; i < meaning_names.size(); ++i)
    if (meaning_names[i] == name) return static_cast<metric_meaning>(i);
  return std::nullopt;
}

result<engine_metrics> read_metrics(std::string_view page, const std::vector<metric_source>& sources,
                                    std::optional<std::uint32_t> rank) {
  if (page.size() > max_metrics_bytes)
    return error{errc::too_large, "a metrics page of " + std::to_string(page.size()) + " bytes"};
  std::unordered_multimap<std::string_view, std::size_t> wanted;
  for (std::size_t i = 0; i < sources.size(); ++i) wanted.emplace(sources[i].metric, i);
  std::vector<tally> tallies(sources.size());
  const auto wanted_rank = rank ? std::to_string(*rank) : std::string();
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
    auto [at, last] = wanted.equal_range(sample->metric);
    if (at == last || !is_of_rank(*sample, wanted_rank)) continue;
    for (; at != last; ++at) add(tallies[at->second], sources[at->second], *sample);
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

namespace {

/// Names in a message: an engine holds a few adapters, a page may say anything.
std::vector<std::string> bounded(const std::optional<std::vector<std::string>>& names) {
  constexpr std::size_t most_names = 256;
  constexpr std::size_t most_bytes = 512;
  std::vector<std::string> kept;
  if (!names) return kept;
  for (const auto& name : *names)
    if (kept.size() < most_names && name.size() <= most_bytes) kept.push_back(name);
  return kept;
}

}  // namespace

fb::EngineLoadT load_of(const engine_metrics& now, const engine_metrics* before, double seconds) {
  fb::EngineLoadT load;
  load.running = now.running;
  load.waiting = now.waiting;
  load.kv_usage = now.kv_usage;
  load.prefix_cache_queries = now.prefix_cache_queries;
  load.prefix_cache_hits = now.prefix_cache_hits;
  load.adapters_running = bounded(now.running_adapters);
  load.adapters_waiting = bounded(now.waiting_adapters);
  load.max_adapters = now.max_adapters;
  if (before != nullptr) {
    load.prompt_tokens_per_second = rate(now.prompt_tokens, before->prompt_tokens, seconds);
    load.generation_tokens_per_second = rate(now.generation_tokens, before->generation_tokens, seconds);
  }
  return load;
}

}  // namespace infernex::engine
