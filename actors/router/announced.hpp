#pragma once

#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "actors/router/topology.hpp"

namespace infernex::router {

/// Names above are not taken: of models, instances, labels.
inline constexpr std::size_t max_name_bytes = 512;

template <class T>
std::optional<T> optional_of(const flatbuffers::Optional<T>& value) {
  return value ? std::optional<T>(*value) : std::nullopt;
}

// What agents say of engines, as far as it is kept: the first so many of each kind.

std::vector<std::pair<std::string, std::string>> labels_of(const fb::EngineAnnounce& message);
std::vector<std::uint32_t> devices_of(const fb::EngineAnnounce& message);
std::optional<kv_transfer> kv_transfer_of(const fb::EngineAnnounce& message);
/// Nothing where the engine says nothing of them: an empty list is left out of a message.
std::optional<adapter_use> adapters_in(const fb::EngineLoad& message);

}  // namespace infernex::router
