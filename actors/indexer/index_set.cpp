#include "actors/indexer/index_set.hpp"

namespace infernex::indexer {

index_set::index_set(limits bounds) : bounds_(bounds), budget_(std::make_shared<byte_budget>(bounds.max_bytes)) {
  models_.publish(std::make_shared<const index_map>());
}

std::shared_ptr<kv_index> index_set::obtain(std::string_view model) {
  if (const auto it = owned_.find(model); it != owned_.end()) return it->second;
  if (owned_.size() >= bounds_.max_models) return nullptr;
  auto index = std::make_shared<kv_index>(bounds_.per_model, budget_);
  owned_.emplace(model, index);
  models_.publish(std::make_shared<const index_map>(owned_));
  return index;
}

void index_set::drop(std::string_view model) {
  const auto it = owned_.find(model);
  if (it == owned_.end()) return;
  owned_.erase(it);
  models_.publish(std::make_shared<const index_map>(owned_));
}

std::shared_ptr<const kv_index> index_set::find(std::string_view model) const {
  published<index_map>::reader models(models_);
  const auto* now = models.get();
  const auto it = now->find(model);
  return it == now->end() ? nullptr : it->second;
}

std::optional<std::span<const match>> index_set::reader::lookup(std::string_view model,
                                                                std::span<const block_key> chain) {
  const auto* now = models_.get();
  if (now != seen_) {
    std::erase_if(open_, [now](const auto& entry) {
      const auto it = now->find(entry.first);
      return it == now->end() || it->second != entry.second.index;
    });
    seen_ = now;
  }
  auto it = open_.find(model);
  if (it == open_.end()) {
    const auto known = now->find(model);
    if (known == now->end()) return std::nullopt;
    auto lookups = std::make_unique<kv_index::reader>(*known->second);
    it = open_.emplace(model, open_index{known->second, std::move(lookups)}).first;
  }
  return it->second.lookups->lookup(chain);
}

}  // namespace infernex::indexer
