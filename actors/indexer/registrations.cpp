#include "actors/indexer/registrations.hpp"

#include <algorithm>

namespace infernex::indexer {

namespace {

refusal conflict(std::string message, const char* code, const char* field) {
  return {409, std::string(field) + ": " + std::move(message), code, field};
}

}  // namespace

registrations::decision registrations::decide(registration& wanted, const index_page& page, time_point now) {
  const auto size = block_size_of(wanted.engine.model, page);
  if (size && wanted.engine.block_size && wanted.engine.block_size != size)
    return {verdict::refused, conflict("keys of this model are made at " + std::to_string(*size) +
                                           " tokens a block; leave it out to have the engine's blocks regrouped",
                                       "block_size_conflict", "block_size")};
  if (size) wanted.engine.block_size = size;
  const auto same = std::ranges::find_if(
      known_, [&](const registration& one) { return one.engine.instance == wanted.engine.instance; });
  if (same != known_.end()) {
    // Its size was left open when nobody knew the model's.
    wanted.engine.block_size = same->engine.block_size;
    if (same->engine == wanted.engine) return {verdict::said_already, std::nullopt};
    return {verdict::refused, conflict(wanted.engine.instance + " is registered with other endpoints",
                                       "already_registered", "instance_id")};
  }
  if (followed_elsewhere(wanted, page, now))
    return {verdict::refused, conflict("an engine " + wanted.engine.instance + " of this model is followed already",
                                       "already_registered", "instance_id")};
  return {};
}

void registrations::added(registration what) {
  ended_.erase(what.engine.instance);
  known_.push_back(std::move(what));
}

void registrations::lost(std::string_view instance) {
  std::erase_if(known_, [&](const registration& one) { return one.engine.instance == instance; });
}

std::vector<registration> registrations::remove(const unregistration& unwanted, time_point now) {
  const auto gone = std::stable_partition(known_.begin(), known_.end(),
                                          [&](const registration& one) { return !unwanted.names(one); });
  std::vector<registration> removed(gone, known_.end());
  known_.erase(gone, known_.end());
  for (const auto& one : removed) ended_.insert_or_assign(one.engine.instance, now);
  return removed;
}

bool registrations::has(std::string_view instance) const {
  return std::ranges::any_of(known_, [&](const registration& one) { return one.engine.instance == instance; });
}

std::optional<std::uint32_t> registrations::block_size_of(const std::string& model, const index_page& page) const {
  // Those just registered have not been announced yet.
  for (const auto& one : known_)
    if (one.engine.model == model && one.engine.block_size) return one.engine.block_size;
  const auto* engines = page.engines->find(model);
  return engines ? engines->block_size() : std::nullopt;
}

bool registrations::followed_elsewhere(const registration& wanted, const index_page& page, time_point now) {
  std::erase_if(ended_, [&](const auto& one) { return now - one.second >= page.stale_after; });
  const auto* model = page.engines->find(wanted.engine.model);
  const auto* engine = model ? model->find(wanted.engine.instance) : nullptr;
  if (!engine) return false;
  if (engine->state == fb::EngineState::Down) {
    ended_.erase(wanted.engine.instance);
    return false;
  }
  if (ended_.contains(wanted.engine.instance)) return false;
  const auto sources = page.sources_of(wanted.engine.model);
  const auto at = std::ranges::lower_bound(sources, wanted.engine.instance, {}, &source_status::instance);
  const bool heard =
      at == sources.end() || at->instance != wanted.engine.instance || now - at->last_heard < page.stale_after;
  return heard;
}

}  // namespace infernex::indexer
