#include "actors/engine/metrics.hpp"

#include <array>
#include <utility>

namespace infernex::engine {

namespace {

struct stream_counter {
  std::uint64_t source_state::counts::*field;
  const char* name;
  const char* help;
};
constexpr std::array stream_counters{
    stream_counter{&source_state::counts::batches, "infernex_agent_batches_total", "KV event batches applied"},
    stream_counter{&source_state::counts::duplicates, "infernex_agent_duplicate_batches_total",
                   "Batches that were known already"},
    stream_counter{&source_state::counts::gaps, "infernex_agent_gaps_total", "Jumps of the engine's event sequence"},
    stream_counter{&source_state::counts::restarts, "infernex_agent_stream_restarts_total",
                   "Event streams that began anew"},
    stream_counter{&source_state::counts::replays, "infernex_agent_replays_total", "Replays asked of the engine"},
    stream_counter{&source_state::counts::replay_failures, "infernex_agent_replay_failures_total",
                   "Replays that were not answered"},
    stream_counter{&source_state::counts::replays_postponed, "infernex_agent_replays_postponed_total",
                   "Times a replay had to wait for others of the process"},
    stream_counter{&source_state::counts::losses, "infernex_agent_lost_history_total",
                   "Times the engine no longer had missing batches"},
};

constexpr std::array<const char*, 3> event_kinds{"stored", "removed", "cleared"};

}  // namespace

agent_metrics::agent_metrics(metrics_registry& registry, std::string instance)
    : deltas(registry.counter("infernex_agent_deltas_total", "KV deltas published", {{"instance", instance}})),
      announcements(
          registry.counter("infernex_agent_announcements_total", "Announcements published", {{"instance", instance}})),
      snapshots(
          registry.counter("infernex_agent_snapshots_total", "Snapshot requests answered", {{"instance", instance}})),
      unsent(
          registry.counter("infernex_agent_unsent_total", "Messages the bus did not take", {{"instance", instance}})),
      registry_(registry),
      instance_(std::move(instance)),
      keys_(registry.gauge("infernex_agent_mirror_keys", "Block keys in the mirror, over all tiers",
                           {{"instance", instance_}})),
      bytes_(
          registry.gauge("infernex_agent_mirror_bytes", "Memory the mirror has allocated", {{"instance", instance_}})),
      parked_(
          registry.gauge("infernex_agent_parked_blocks", "Blocks that wait for a parent", {{"instance", instance_}})),
      ready_(registry.gauge("infernex_agent_engine_ready", "1 while the engine is ready", {{"instance", instance_}})) {}

void agent_metrics::on_events(const event_batch& group) {
  std::array<std::uint64_t, event_kinds.size()> count{};
  for (const auto& batch : group.batches)
    for (const auto& event : batch.events) ++count[event.index()];
  for (std::size_t i = 0; i < count.size(); ++i) {
    if (count[i] == 0) continue;
    registry_
        .counter("infernex_agent_events_total", "KV events read", {{"instance", instance_}, {"kind", event_kinds[i]}})
        .Increment(static_cast<double>(count[i]));
  }
  for (std::size_t i = 0; i < wire_forms; ++i) {
    const auto form = static_cast<wire_form>(i);
    const auto more = group.forms[form] - forms_[form];
    if (more == 0) continue;
    registry_
        .counter("infernex_agent_wire_forms_total", "Batches and events by the shape they came in",
                 {{"instance", instance_}, {"form", std::string(name(form))}})
        .Increment(static_cast<double>(more));
  }
  forms_ = group.forms;
  for (std::size_t i = 0; i < static_cast<std::size_t>(stream_state::count_); ++i) {
    const auto state = static_cast<stream_state>(i);
    registry_
        .gauge("infernex_agent_stream_state", "1 for the state the KV event stream is in",
               {{"instance", instance_}, {"state", std::string(name(state))}})
        .Set(state == group.stream ? 1 : 0);
  }
}

void agent_metrics::on_probe(const probe_result& probe) {
  if (probe.problem.code == errc::none) return;
  registry_
      .counter("infernex_agent_probe_failures_total", "Health, metrics and model questions that failed",
               {{"instance", instance_}, {"reason", std::string(name(probe.problem.code))}})
      .Increment();
}

/// One gauge a fault: 1 for what the last probe found.
void agent_metrics::on_parity(parity_fault found) {
  for (std::size_t i = 0; i < static_cast<std::size_t>(parity_fault::count_); ++i) {
    const auto fault = static_cast<parity_fault>(i);
    registry_
        .gauge("infernex_agent_parity", "1 for what the last parity probe of the engine found",
               {{"instance", instance_}, {"fault", std::string(name(fault))}})
        .Set(fault == found ? 1 : 0);
  }
}

void agent_metrics::follow(const ledger& book) {
  const auto dropped = book.dropped();
  for (std::size_t i = 0; i < drop_reasons; ++i) {
    const auto reason = static_cast<drop_reason>(i);
    const auto more = dropped[reason] - dropped_[reason];
    if (more == 0) continue;
    registry_
        .counter("infernex_agent_events_dropped_total", "KV events without effect",
                 {{"instance", instance_}, {"reason", std::string(name(reason))}})
        .Increment(static_cast<double>(more));
  }
  dropped_ = dropped;
  const auto& stream = book.stream_totals();
  for (const auto& each : stream_counters) {
    const auto more = stream.*each.field - stream_.*each.field;
    if (more > 0)
      registry_.counter(each.name, each.help, {{"instance", instance_}}).Increment(static_cast<double>(more));
  }
  stream_ = stream;
  keys_.Set(static_cast<double>(book.keys()));
  bytes_.Set(static_cast<double>(book.mirror_bytes()));
  parked_.Set(static_cast<double>(book.parked()));
  ready_.Set(book.engine().state() == fb::EngineState::Ready ? 1 : 0);
}

}  // namespace infernex::engine
