#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <vector>

#include "actors/simulator/replay_histogram.hpp"

namespace infernex::simulator {

/// Milliseconds. Mean and most are exact, quantiles within 0.8 %.
struct latency_summary {
  std::uint64_t count = 0;
  double mean = 0;
  double p50 = 0;
  double p90 = 0;
  double p99 = 0;
  double most = 0;

  /// Nothing if nothing was counted.
  static std::optional<latency_summary> of(const replay_histogram& values);
};

/// What a replay showed after the warm-up: of the requests that arrived since, and, for inter-token times, work and
/// load, of what happened since. What could not be measured is absent.
struct replay_summary {
  std::uint64_t warm_up_requests = 0;
  std::uint64_t requests = 0;
  /// requests = completed + shed + failed + unfinished.
  std::uint64_t completed = 0;
  std::uint64_t shed = 0;
  std::uint64_t failed = 0;
  std::uint64_t unfinished = 0;
  /// Of completed requests.
  std::uint64_t output_tokens = 0;
  /// Of requests with a first token.
  std::uint64_t prompt_tokens = 0;
  std::uint64_t cached_tokens = 0;
  std::optional<latency_summary> ttft;
  /// Between two tokens of one request; a sample a token.
  std::optional<latency_summary> inter_token;
  /// Mean time per output token after the first, a sample a completed request of more than one token.
  std::optional<latency_summary> per_token;
  /// From arrival to the last token.
  std::optional<latency_summary> end_to_end;
  /// Completed ones and their tokens, over the time from the first arrival to the last completion.
  std::optional<double> requests_per_second;
  std::optional<double> output_tokens_per_second;
  /// Share of all requests that had their first token in time (statistics_settings) and did not fail.
  std::optional<double> goodput;
  /// Of those, who also had their tokens in time.
  std::optional<double> goodput_per_token;
  /// Share of prompt tokens that came from a cache.
  std::optional<double> hit_share;
  /// The busiest engine's work against the mean of all: 1 is perfect balance.
  std::optional<double> work_imbalance;
  /// Mean over the samples of the loads' coefficient of variation (standard deviation / mean): 0 is perfect balance.
  std::optional<double> load_variation;
};

struct statistics_settings {
  /// Requests that arrive before are not counted, nor what happens before.
  double warm_up_ms = 0;
  /// A request is in time with a TTFT below `goodput_base_ms` + `goodput_factor` x its TTFT on an idle engine.
  double goodput_base_ms = 2'000;
  double goodput_factor = 2;
  /// Its tokens are in time if its mean time per output token is not above.
  double goodput_token_ms = 50;
};

/// Collects what happens in a replay. Requests are named by their index in the trace: memory is 16 bytes for each up to
/// the highest. Times are milliseconds of the replay's clock. Calls of one request come in the order arrived,
/// first_token, and one of finished, failed, shed; what does not is ignored.
class replay_statistics {
 public:
  explicit replay_statistics(statistics_settings settings = {}) : settings_(settings) {}

  void arrived(std::uint64_t id, double at_ms);
  /// `unloaded_ttft_ms`: what the TTFT would have been on an idle engine with an empty cache.
  void first_token(std::uint64_t id, double at_ms, std::uint32_t prompt_tokens, std::uint32_t cached_tokens,
                   double unloaded_ttft_ms);
  /// `count` tokens at `at_ms` that came `gap_ms` after the ones before them: an engine's step is one call.
  void tokens(std::uint64_t count, double gap_ms, double at_ms) {
    if (at_ms >= settings_.warm_up_ms) inter_token_.add(gap_ms, count);
  }
  void finished(std::uint64_t id, double at_ms, std::uint32_t output_tokens);
  /// Refused, nothing of it was answered.
  void shed(std::uint64_t id, double at_ms);
  /// Its engine was lost after the first token, or no engine was left to try.
  void failed(std::uint64_t id, double at_ms);

  /// An engine was busy for so long, up to `at_ms`. Engines that never work count if `engines` of them are known.
  void worked(std::size_t engine, double busy_ms, double at_ms);
  void engines(std::size_t count);
  /// The loads of all engines at one moment, in any unit.
  void sampled(std::span<const double> loads, double at_ms);

  const replay_histogram& ttft() const { return ttft_; }
  replay_summary summary() const;

 private:
  enum class stage : std::uint8_t { unknown, waiting, answering, over };
  struct request {
    double arrived_ms = 0;
    float ttft_ms = 0;
    stage at = stage::unknown;
    bool in_time = false;
  };

  /// Null where it was not counted, or is not at one of these stages.
  request* find(std::uint64_t id, stage one, stage other);

  statistics_settings settings_;
  std::vector<request> requests_;
  replay_histogram ttft_, inter_token_, per_token_, end_to_end_;
  std::vector<double> work_ms_;
  replay_summary counts_;
  std::uint64_t in_time_ = 0;
  std::uint64_t tokens_in_time_ = 0;
  std::optional<double> first_arrival_ms_;
  double last_completion_ms_ = 0;
  double variation_sum_ = 0;
  std::uint64_t samples_ = 0;
};

}  // namespace infernex::simulator
