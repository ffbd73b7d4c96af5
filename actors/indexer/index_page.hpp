#pragma once

#include <memory>
#include <string>
#include <vector>

#include "actors/indexer/tracker.hpp"

namespace infernex::indexer {

/// What `GET /v1/index` shows: an immutable snapshot, made by the tracker's owner.
struct index_page {
  struct model {
    std::string name;
    std::uint64_t distinct_keys = 0;
    std::uint64_t bytes = 0;
    std::uint64_t refused_keys = 0;
  };
  std::vector<model> models;
  /// By model, then instance.
  std::vector<source_status> sources;
};

index_page make_page(const tracker& from, const index_set& indexes, time_point now);

/// JSON: `{"models":[{"model":…,"distinct_keys":…,"bytes":…,"refused_keys":…,"instances":[{"instance":…,
/// "keys":…,"digest":"16 hex digits","exact":…,"sequence":…,"agent_epoch":…,"engine_epoch":…|null,
/// "age_ms":…}]}]}`. Epochs are nanoseconds since 1970.
std::string to_json(const index_page& page, time_point now);

}  // namespace infernex::indexer
