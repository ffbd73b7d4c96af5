#pragma once

#include <array>
#include <cstdint>
#include <functional>
#include <memory>
#include <span>
#include <vector>

#include "actors/simulator/replay_news.hpp"
#include "actors/simulator/replay_policy.hpp"
#include "actors/simulator/replay_statistics.hpp"
#include "actors/simulator/replay_trace.hpp"

namespace infernex::simulator {

struct replay_settings {
  std::vector<replay_engine_settings> engines;
  replay_delays delays;
  /// Replicas. A request's gateway is drawn by `seed`.
  std::uint32_t gateways = 1;
  std::uint32_t routers = 1;
  /// All gateways ask the same router, the others stand by; if not, a request's router is drawn by `seed` as well.
  bool router_affinity = true;
  /// What gateway and network add to every request's time to the first token.
  double network_ms = 1;
  /// KV from a prefill to a decode engine: only the blocks that this has not cached travel. 128 KiB a token is Llama 3
  /// 8B in bf16 (2 x 32 layers x 8 heads x 128 x 2 bytes); 25 GB/s is a port of 200 Gbit/s.
  double transfer_bytes_per_token = 131'072;
  double transfer_bytes_per_ms = 25e6;
  double transfer_latency_ms = 2;
  std::uint64_t seed = 1;
};

/// The time to the first token of a prompt alone on an idle engine that caches nothing, without network.
double unloaded_ttft_ms(const settings& engine, double speed, std::uint32_t prompt_tokens);

/// A fleet under a trace, in virtual time: arrivals are placed by the policy's replicas, engines run, and what they do
/// becomes known as late as it would. Deterministic: one thread, ties broken by kind and number.
///
/// Prefill and decode apart: the prefill engine computes the prompt and one token, which nobody sees (as with vLLM's
/// proxies), its blocks are free at once; then the KV travels, by what the decode engine has not cached at that moment;
/// then the request queues there for memory, and its first token is that of its first step there.
///
/// A failed engine's requests are placed again at once, with what they were answered as part of the prompt.
class replay_world : replay_engine_events {
 public:
  /// Precondition: check() finds nothing wrong. The trace and the statistics must outlive it.
  replay_world(replay_settings settings, const repeated_trace& requests, const replay_policy_maker& policy,
               replay_statistics& statistics);
  ~replay_world() override;

  /// The first thing wrong, if any.
  static std::optional<error> check(const replay_settings& settings, std::uint32_t block_tokens);

  /// To the end of the last request. `progress` is told the number of arrivals now and then; false stops.
  void run(const std::function<bool(std::size_t)>& progress = {});

  double now_ms() const { return now_ms_; }
  const replay_engine& engine(std::uint32_t number) const { return *engines_[number]; }

 private:
  enum class rank : std::uint8_t { membership, report, arrival, landing, step };
  struct event {
    double at_ms;
    rank what;
    std::uint32_t number;
  };
  enum class stage : std::uint8_t { none, prefill, transfer, decode };
  struct request {
    replay_progress told;
    stage at = stage::none;
    sequence_slot slot = 0;
    std::uint32_t gateway = 0;
    std::uint32_t router = 0;
    /// By engines that were lost, when the last of them was, and whether there was a first token anywhere.
    std::uint32_t answered = 0;
    double lost_ms = 0;
    bool begun = false;
    /// With what was answered by then.
    std::uint32_t prompt_tokens = 0;
    /// When its KV arrives.
    double lands_ms = 0;
    traced_request traced;
    std::vector<block_name> blocks;
  };

  void on_token(const made_token& made, double at_ms) override;
  void on_gap(std::uint32_t count, double gap_ms, double at_ms) override;
  void on_changes(std::span<const cache_change> changes, double at_ms) override;

  static bool later(const event& a, const event& b);
  void push(event what);
  void follow(std::uint32_t engine);
  void handle(const event& due);
  void membership(std::uint32_t engine);
  void report(std::uint32_t engine);
  void arrive(std::size_t index);
  void place(std::uint32_t open);
  void enter(std::uint32_t open, std::uint32_t engine);
  void refuse(std::uint32_t open);
  void end(std::uint32_t open, double at_ms, bool placed);
  void replace_all(std::uint32_t engine);
  void tell_work(std::uint32_t engine);
  std::span<const block_name> full_blocks(const request& one) const;
  double unloaded(std::uint32_t prompt_tokens) const;
  double transfer_ms(std::uint64_t tokens) const;

  replay_settings settings_;
  const repeated_trace& trace_;
  replay_statistics& statistics_;
  replay_news news_;
  std::vector<std::unique_ptr<replay_engine>> engines_;
  /// By role, null where there is none: whose times an idle fleet would have.
  std::array<const replay_engine_settings*, 3> fastest_{};
  std::vector<std::unique_ptr<replay_policy>> routers_;
  std::vector<event> events_;  // a heap
  /// By engine: up, the moment its next step is in the heap for, and its work told so far.
  struct engine_state {
    bool up = false;
    double awaited_ms = replay_engine::never;
    double told_busy_ms = 0;
  };
  std::vector<engine_state> states_;
  std::vector<request> open_;
  std::vector<std::uint32_t> unused_;
  std::size_t open_count_ = 0;
  std::size_t next_arrival_ = 0;
  /// Whose events are told at the moment.
  std::uint32_t running_ = 0;
  double now_ms_ = 0;
  std::vector<double> loads_;  // scratch
};

}  // namespace infernex::simulator
