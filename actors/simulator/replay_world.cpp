#include "actors/simulator/replay_world.hpp"

#include <algorithm>
#include <cmath>
#include <tuple>

namespace infernex::simulator {

namespace {

const replay_engine_settings* fastest(std::span<const replay_engine_settings> engines, replay_role role) {
  const replay_engine_settings* best = nullptr;
  for (const auto& each : engines)
    if (each.role == role && (!best || each.speed > best->speed)) best = &each;
  return best;
}

}  // namespace

double unloaded_ttft_ms(const settings& engine, double speed, std::uint32_t prompt_tokens) {
  return unloaded_milliseconds(engine.costs, engine.max_num_batched_tokens, prompt_tokens) / speed;
}

std::optional<error> replay_world::check(const replay_settings& settings, std::uint32_t block_tokens) {
  const auto wrong = [](std::string detail) { return error{errc::invalid_config, std::move(detail)}; };
  // As many instances as an index holds.
  if (settings.engines.empty() || settings.engines.size() > 3'840) return wrong("engines: 1 to 3840");
  for (const auto& each : settings.engines) {
    if (auto failed = simulator::check(each.engine)) return failed;
    if (each.engine.block_size != block_tokens)
      return wrong("block_size: that of the trace's blocks, " + std::to_string(block_tokens));
    if (!(each.speed > 0) || !std::isfinite(each.speed)) return wrong("speed: above 0");
    if (!(each.starts_ms >= 0) || !(each.dies_ms > each.starts_ms)) return wrong("an engine fails after it started");
  }
  if (settings.gateways == 0 || settings.routers == 0) return wrong("gateways, routers: at least one each");
  for (const double time : {settings.network_ms, settings.transfer_latency_ms, settings.transfer_bytes_per_token,
                            settings.delays.kv_event_ms, settings.delays.life_interval_ms})
    if (!(time >= 0) || !std::isfinite(time)) return wrong("times and sizes: finite, not negative");
  if (!(settings.transfer_bytes_per_ms > 0)) return wrong("transfer bandwidth: above 0");
  if (!(settings.delays.report_interval_ms > 0)) return wrong("report interval: above 0");
  return std::nullopt;
}

replay_world::replay_world(replay_settings settings, const repeated_trace& requests, const replay_policy_maker& policy,
                           replay_statistics& statistics)
    : settings_(std::move(settings)),
      trace_(requests),
      statistics_(statistics),
      news_(settings_.delays, static_cast<std::uint32_t>(settings_.engines.size()), settings_.gateways),
      states_(settings_.engines.size()) {
  const auto count = static_cast<std::uint32_t>(settings_.engines.size());
  for (const auto role : {replay_role::aggregated, replay_role::prefill, replay_role::decode})
    fastest_[static_cast<std::size_t>(role)] = fastest(settings_.engines, role);
  for (std::uint32_t i = 0; i < count; ++i) {
    const auto& each = settings_.engines[i];
    engines_.push_back(std::make_unique<replay_engine>(each.engine, each.speed));
    push({each.starts_ms, rank::membership, i});
    if (each.dies_ms != replay_engine::never) push({each.dies_ms, rank::membership, i});
  }
  push({settings_.delays.report_interval_ms, rank::report, count});
  const replay_fleet fleet{settings_.engines, engines_, &news_.index(), trace_.block_tokens(),
                           [this](std::uint64_t tokens) { return transfer_ms(tokens); }};
  for (std::uint32_t i = 0; i < settings_.routers; ++i) routers_.push_back(policy(fleet, settings_.seed + i));
  news_.tell_to(routers_);
  statistics_.engines(count);
}

replay_world::~replay_world() = default;

bool replay_world::later(const event& a, const event& b) {
  return std::tie(a.at_ms, a.what, a.number) > std::tie(b.at_ms, b.what, b.number);
}

void replay_world::push(event what) {
  events_.push_back(what);
  std::push_heap(events_.begin(), events_.end(), later);
}

void replay_world::follow(std::uint32_t engine) {
  const auto next = engines_[engine]->next_ms();
  if (next == replay_engine::never || next == states_[engine].awaited_ms) return;
  states_[engine].awaited_ms = next;
  push({next, rank::step, engine});
}

double replay_world::transfer_ms(std::uint64_t tokens) const {
  return settings_.transfer_latency_ms +
         static_cast<double>(tokens) * settings_.transfer_bytes_per_token / settings_.transfer_bytes_per_ms;
}

double replay_world::unloaded(std::uint32_t prompt_tokens) const {
  auto best = replay_engine::never;
  const auto [alone, prefill, decode] = fastest_;
  if (alone) best = unloaded_ttft_ms(alone->engine, alone->speed, prompt_tokens);
  if (prefill && decode) {
    const auto memory = std::uint64_t{decode->engine.total_blocks} * decode->engine.block_size;
    best =
        std::min(best, unloaded_ttft_ms(prefill->engine, prefill->speed, prompt_tokens) + transfer_ms(prompt_tokens) +
                           decode_milliseconds(decode->engine.costs, prompt_tokens, memory) / decode->speed);
  }
  return best + settings_.network_ms;
}

void replay_world::run(const std::function<bool(std::size_t)>& progress) {
  while (next_arrival_ < trace_.size() || open_count_ > 0) {
    const auto arrives = next_arrival_ < trace_.size() ? trace_.arrival_ms(next_arrival_) : replay_engine::never;
    if (next_arrival_ < trace_.size() && !later({arrives, rank::arrival, 0}, events_.front())) {
      now_ms_ = arrives;
      if (progress && next_arrival_ % 4'096 == 0 && !progress(next_arrival_)) break;
      arrive(next_arrival_++);
      continue;
    }
    const auto due = events_.front();
    std::pop_heap(events_.begin(), events_.end(), later);
    events_.pop_back();
    now_ms_ = due.at_ms;
    handle(due);
  }
  news_.deliver(replay_engine::never);
  for (std::uint32_t i = 0; i < engines_.size(); ++i) tell_work(i);
}

void replay_world::handle(const event& due) {
  switch (due.what) {
    case rank::membership:
      return membership(due.number);
    case rank::report:
      return report(due.number);
    case rank::arrival:
      return;
    case rank::landing: {
      auto& one = open_[due.number];
      if (one.at != stage::transfer || one.lands_ms != due.at_ms) return;  // of an earlier life
      one.at = stage::decode;
      return enter(due.number, *one.told.choice.decode);
    }
    case rank::step: {
      auto& engine = *engines_[due.number];
      if (!states_[due.number].up || engine.next_ms() != due.at_ms) return;  // it was woken earlier
      states_[due.number].awaited_ms = replay_engine::never;
      running_ = due.number;
      engine.run(*this);
      return follow(due.number);
    }
  }
}

void replay_world::membership(std::uint32_t engine) {
  auto& state = states_[engine];
  state.up = !state.up;
  if (!state.up) {
    news_.engine_down(engine, now_ms_);
    return replace_all(engine);
  }
  news_.engine_up(engine, now_ms_);
  // Agents scrape each at a time of its own.
  const auto share = (engine + 0.5) / static_cast<double>(engines_.size());
  push({now_ms_ + share * settings_.delays.report_interval_ms, rank::report, engine});
}

void replay_world::tell_work(std::uint32_t engine) {
  const auto busy = engines_[engine]->busy_ms();
  statistics_.worked(engine, busy - states_[engine].told_busy_ms, now_ms_);
  states_[engine].told_busy_ms = busy;
}

void replay_world::report(std::uint32_t engine) {
  if (engine == engines_.size()) {
    loads_.clear();
    for (std::uint32_t i = 0; i < engine; ++i) {
      if (!states_[i].up) continue;
      const auto load = engines_[i]->load();
      loads_.push_back(load.running + load.waiting);
    }
    statistics_.sampled(loads_, now_ms_);
  } else {
    tell_work(engine);
    if (!states_[engine].up) return;
    news_.load_reported(engine, engines_[engine]->load(), now_ms_);
  }
  push({now_ms_ + settings_.delays.report_interval_ms, rank::report, engine});
}

void replay_world::on_gap(std::uint32_t count, double gap_ms, double at_ms) {
  statistics_.tokens(count, gap_ms, at_ms);
}

void replay_world::on_changes(std::span<const cache_change> changes, double at_ms) {
  news_.blocks_changed(running_, changes, at_ms);
}

}  // namespace infernex::simulator
