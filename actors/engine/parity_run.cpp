#include "actors/engine/parity_run.hpp"

namespace infernex::engine {

parity_run::ended parity_run::go_on() {
  if (!probe_) return {};
  if (probe_->verdict()) {
    auto verdict = *probe_->verdict();
    probe_.reset();
    return verdict;
  }
  if (asked_) return {};
  if (auto question = probe_->request()) {
    asked_ = true;
    ask_(number_, *std::move(question));
  }
  return {};
}

parity_run::ended parity_run::follow(const ledger& book, const discovery::engine_descriptor& engine, time_point now) {
  const auto& state = book.engine();
  if (probe_ && (state.state() != fb::EngineState::Ready || state.epoch() != probed_epoch_)) probe_.reset();
  if (probe_) {
    probe_->on_tick(now);
    return go_on();
  }
  // A decode engine is given prompts by its prefill engine only.
  if (!enabled_ || engine.url.empty() || engine.role == fb::EngineRole::Decode) return {};
  if (state.state() != fb::EngineState::Ready || !state.epoch() || state.epoch() == probed_epoch_) return {};
  const auto health = book.kv_health();
  if (book.model().empty() || health == fb::KvHealth::Replaying) return {};
  probed_epoch_ = state.epoch();
  parity_settings about;
  about.model = book.model();
  about.announced_block_size = book.metrics_block_size();  // the descriptor speaks of our keys, not of the engine
  about.max_model_len = book.max_model_len();
  about.expects_events = health != fb::KvHealth::Absent;
  asked_ = false;
  probe_.emplace(std::move(about), seed_ + ++number_, now);
  return go_on();
}

parity_run::ended parity_run::on_events(const event_batch& group, time_point now) {
  if (!probe_) return {};
  for (const auto& batch : group.batches)
    for (const auto& event : batch.events)
      if (const auto* stored = std::get_if<stored_blocks>(&event)) probe_->on_stored(*stored, now);
  return go_on();
}

parity_run::ended parity_run::on_answer(std::uint64_t probe, unsigned status, const std::string& body, time_point now) {
  if (!probe_ || probe != number_ || !asked_) return {};
  asked_ = false;
  if (status == 0)
    probe_->on_failure(body, now);
  else
    probe_->on_answer(status, body, now);
  return go_on();
}

}  // namespace infernex::engine
