#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>

#include "actors/indexer/kv_index.hpp"
#include "messages/published.hpp"

namespace infernex::indexer {

/// One kv_index a model. One writer; any thread may look up, through a reader of its own.
class index_set {
 public:
  struct limits {
    std::uint32_t max_models = 64;
    /// Of all models together.
    std::uint64_t max_bytes = 2ULL << 30;
    kv_index::limits per_model{1024, 2ULL << 30};
  };
  using index_map = std::map<std::string, std::shared_ptr<kv_index>, std::less<>>;

  explicit index_set(limits bounds);
  index_set() : index_set(limits{}) {}

  // --- writer ---
  /// The model's index, made if need be; null: max_models is reached.
  std::shared_ptr<kv_index> obtain(std::string_view model);
  /// Takes the model out; its memory goes when the last reader has let go.
  void drop(std::string_view model);

  // --- any thread ---
  /// Null if no engine of the model is known. Takes a lock: for status, not for hot paths.
  std::shared_ptr<const kv_index> find(std::string_view model) const;
  std::uint64_t bytes() const { return budget_->used(); }

  /// One per reading thread. Lock-free as long as no model comes or goes. The set must outlive it.
  class reader {
   public:
    explicit reader(const index_set& set) : set_(&set), models_(set.models_) {}
    /// See kv_index::reader::lookup; nullopt: the model is not indexed. Valid until the next call.
    std::optional<std::span<const match>> lookup(std::string_view model, std::span<const block_key> chain);

   private:
    struct open_index {
      std::shared_ptr<const kv_index> index;
      std::unique_ptr<kv_index::reader> lookups;  // ends before the index
    };
    const index_set* set_;
    published<index_map>::reader models_;
    const index_map* seen_ = nullptr;
    std::map<std::string, open_index, std::less<>> open_;
  };

 private:
  limits bounds_;
  std::shared_ptr<byte_budget> budget_;
  index_map owned_;
  published<index_map> models_;
};

}  // namespace infernex::indexer
