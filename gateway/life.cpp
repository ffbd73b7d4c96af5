#include "gateway/life.hpp"

#include <algorithm>
#include <iterator>
#include <utility>

namespace infernex::gateway {

life::life(std::string source, std::uint64_t epoch, limits bounds)
    : source_(std::move(source)), epoch_(epoch), bounds_(bounds) {}

life::model_life* life::find(const std::string& model) {
  if (const auto found = models_.find(model); found != models_.end()) return &found->second;
  if (models_.size() >= bounds_.max_models) return nullptr;
  return &models_[model];
}

void life::apply(const life_events& events, clock_point now) {
  for (const auto& change : events.changes) {
    auto* model = find(change.model);
    if (!model || (model->engines.size() >= bounds_.max_instances && !model->engines.contains(change.instance))) {
      ++dropped_;
      continue;
    }
    // Never below zero: a change may have been dropped at a bound.
    auto& engine = model->engines[change.instance];
    engine.requests = std::max<std::int64_t>(0, engine.requests + change.requests);
    engine.prefill_tokens = std::max<std::int64_t>(0, engine.prefill_tokens + change.prefill_tokens);
    engine.blocks = std::max<std::int64_t>(0, engine.blocks + change.blocks);
    engine.idle_since = now;
    model->changed = true;
    if (change.started.empty()) continue;
    if (model->started.size() < bounds_.max_records) {
      model->started.push_back(change.started);
    } else {
      ++dropped_;
    }
  }
  for (const auto& finish : events.finished) {
    auto* model = find(finish.model);
    if (!model || model->finished.size() >= bounds_.max_records) {
      ++dropped_;
      continue;
    }
    model->finished.push_back(finish.record);
    model->changed = true;
  }
}

void life::end_all(clock_point now) {
  for (auto& [name, model] : models_) {
    for (auto& [instance, engine] : model.engines) engine = {0, 0, 0, now};
    model.changed = true;
  }
}

void life::put_back(fb::RequestLifeT&& unsent) {
  auto* model = find(unsent.model);
  if (!model) {
    dropped_ += unsent.started.size() + unsent.finished.size();
    return;
  }
  // They are older than what has come since.
  const auto keep = [this](auto& to, auto&& from) {
    const auto room = bounds_.max_records - std::min(bounds_.max_records, to.size());
    const auto kept = std::min(room, from.size());
    dropped_ += from.size() - kept;
    to.insert(to.begin(), std::make_move_iterator(from.begin()),
              std::make_move_iterator(from.begin() + static_cast<std::ptrdiff_t>(kept)));
  };
  std::vector<fb::FinishedT> finished;
  for (auto& record : unsent.finished) finished.push_back(std::move(*record));
  keep(model->started, std::move(unsent.started));
  keep(model->finished, std::move(finished));
  model->changed = true;
}

void life::drop_records(fb::RequestLifeT& message) {
  dropped_ += message.started.size() + message.finished.size();
  message.started.clear();
  message.finished.clear();
}

bool life::changed() const {
  return std::any_of(models_.begin(), models_.end(), [](const auto& model) { return model.second.changed; });
}

std::vector<fb::RequestLifeT> life::take(bool all, clock_point now) {
  std::vector<fb::RequestLifeT> messages;
  for (auto& [name, model] : models_) {
    if (!all && !model.changed) continue;
    std::erase_if(model.engines, [&](const auto& item) {
      return item.second.requests == 0 && now - item.second.idle_since > bounds_.list_idle_for;
    });
    if (model.engines.empty() && !model.changed) continue;
    auto& message = messages.emplace_back();
    message.origin = std::make_unique<fb::OriginT>();
    message.origin->id = source_;
    message.origin->epoch = epoch_;
    message.origin->sequence = ++model.sequence;
    message.model = name;
    for (const auto& [instance, engine] : model.engines) {
      auto row = std::make_unique<fb::InFlightT>();
      row->instance = instance;
      row->requests = static_cast<std::uint32_t>(engine.requests);
      row->prefill_tokens = static_cast<std::uint64_t>(engine.prefill_tokens);
      row->blocks = static_cast<std::uint64_t>(engine.blocks);
      message.in_flight.push_back(std::move(row));
    }
    message.started = std::exchange(model.started, {});
    for (auto& record : model.finished) message.finished.push_back(std::make_unique<fb::FinishedT>(std::move(record)));
    model.finished.clear();
    model.changed = false;
  }
  return messages;
}

}  // namespace infernex::gateway
