#include "actors/simulator/replay_statistics.hpp"

#include <algorithm>
#include <cmath>
#include <numeric>

namespace infernex::simulator {

std::optional<latency_summary> latency_summary::of(const replay_histogram& values) {
  if (values.count() == 0) return std::nullopt;
  return latency_summary{.count = values.count(),
                         .mean = *values.mean(),
                         .p50 = *values.quantile(0.5),
                         .p90 = *values.quantile(0.9),
                         .p99 = *values.quantile(0.99),
                         .most = *values.most()};
}

void replay_statistics::arrived(std::uint64_t id, double at_ms) {
  if (at_ms < settings_.warm_up_ms) {
    ++counts_.warm_up_requests;
    return;
  }
  if (id >= requests_.size()) requests_.resize(std::max<std::size_t>(id + 1, requests_.size() * 2));
  auto& one = requests_[id];
  if (one.at != stage::unknown) return;
  one = {.arrived_ms = at_ms, .at = stage::waiting};
  ++counts_.requests;
  if (!first_arrival_ms_) first_arrival_ms_ = at_ms;
}

replay_statistics::request* replay_statistics::find(std::uint64_t id, stage one, stage other) {
  if (id >= requests_.size()) return nullptr;
  auto& found = requests_[id];
  return found.at == one || found.at == other ? &found : nullptr;
}

void replay_statistics::first_token(std::uint64_t id, double at_ms, std::uint32_t prompt_tokens,
                                    std::uint32_t cached_tokens, double unloaded_ttft_ms) {
  auto* one = find(id, stage::waiting, stage::waiting);
  if (!one) return;
  const auto ttft = at_ms - one->arrived_ms;
  ttft_.add(ttft);
  counts_.prompt_tokens += prompt_tokens;
  counts_.cached_tokens += cached_tokens;
  one->at = stage::answering;
  one->ttft_ms = static_cast<float>(ttft);
  one->in_time = ttft < settings_.goodput_base_ms + settings_.goodput_factor * unloaded_ttft_ms;
  if (one->in_time) ++in_time_;
}

void replay_statistics::finished(std::uint64_t id, double at_ms, std::uint32_t output_tokens) {
  auto* one = find(id, stage::answering, stage::answering);
  if (!one) return;
  one->at = stage::over;
  const auto took = at_ms - one->arrived_ms;
  end_to_end_.add(took);
  const auto per_token = output_tokens > 1 ? std::max(0.0, took - one->ttft_ms) / (output_tokens - 1) : 0.0;
  if (output_tokens > 1) per_token_.add(per_token);
  if (one->in_time && per_token <= settings_.goodput_token_ms) ++tokens_in_time_;
  ++counts_.completed;
  counts_.output_tokens += output_tokens;
  last_completion_ms_ = std::max(last_completion_ms_, at_ms);
}

void replay_statistics::shed(std::uint64_t id, double /*at_ms*/) {
  auto* one = find(id, stage::waiting, stage::waiting);
  if (!one) return;
  one->at = stage::over;
  ++counts_.shed;
}

void replay_statistics::failed(std::uint64_t id, double /*at_ms*/) {
  auto* one = find(id, stage::waiting, stage::answering);
  if (!one) return;
  if (one->in_time) --in_time_;
  one->at = stage::over;
  ++counts_.failed;
}

void replay_statistics::worked(std::size_t engine, double busy_ms, double at_ms) {
  engines(engine + 1);
  if (at_ms >= settings_.warm_up_ms) work_ms_[engine] += busy_ms;
}

void replay_statistics::engines(std::size_t count) {
  if (count > work_ms_.size()) work_ms_.resize(count);
}

void replay_statistics::sampled(std::span<const double> loads, double at_ms) {
  if (at_ms < settings_.warm_up_ms || loads.empty()) return;
  const auto count = static_cast<double>(loads.size());
  const auto mean = std::accumulate(loads.begin(), loads.end(), 0.0) / count;
  if (mean <= 0) return;  // idle engines are in balance, but say nothing about it
  double squares = 0;
  for (const auto load : loads) squares += (load - mean) * (load - mean);
  variation_sum_ += std::sqrt(squares / count) / mean;
  ++samples_;
}

replay_summary replay_statistics::summary() const {
  auto all = counts_;
  all.unfinished = all.requests - all.completed - all.shed - all.failed;
  all.ttft = latency_summary::of(ttft_);
  all.inter_token = latency_summary::of(inter_token_);
  all.per_token = latency_summary::of(per_token_);
  all.end_to_end = latency_summary::of(end_to_end_);
  if (const auto seconds = (last_completion_ms_ - first_arrival_ms_.value_or(0)) / 1e3;
      all.completed > 0 && seconds > 0) {
    all.requests_per_second = static_cast<double>(all.completed) / seconds;
    all.output_tokens_per_second = static_cast<double>(all.output_tokens) / seconds;
  }
  if (all.requests > 0) {
    all.goodput = static_cast<double>(in_time_) / static_cast<double>(all.requests);
    all.goodput_per_token = static_cast<double>(tokens_in_time_) / static_cast<double>(all.requests);
  }
  if (all.prompt_tokens > 0)
    all.hit_share = static_cast<double>(all.cached_tokens) / static_cast<double>(all.prompt_tokens);
  const auto work = std::accumulate(work_ms_.begin(), work_ms_.end(), 0.0);
  if (work > 0)
    all.work_imbalance =
        *std::max_element(work_ms_.begin(), work_ms_.end()) * static_cast<double>(work_ms_.size()) / work;
  if (samples_ > 0) all.load_variation = variation_sum_ / static_cast<double>(samples_);
  return all;
}

}  // namespace infernex::simulator
