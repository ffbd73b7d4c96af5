#include "actors/router/announced.hpp"

#include <algorithm>

#include "messages/view.hpp"

namespace infernex::router {

namespace {

/// Labels kept of one engine: the first so many, each key and value no longer than a name.
constexpr std::size_t max_labels = 64;
/// Devices likewise, and adapters in use.
constexpr std::size_t max_devices = 64;
constexpr std::size_t max_adapters = 256;

std::vector<std::string> sorted_names(const flatbuffers::Vector<flatbuffers::Offset<flatbuffers::String>>* given) {
  std::vector<std::string> names;
  if (!given) return names;
  for (const auto* one : *given)
    if (names.size() < max_adapters && one->size() <= max_name_bytes) names.emplace_back(text(one));
  std::sort(names.begin(), names.end());
  names.erase(std::unique(names.begin(), names.end()), names.end());
  return names;
}

}  // namespace

std::vector<std::pair<std::string, std::string>> labels_of(const fb::EngineAnnounce& message) {
  std::vector<std::pair<std::string, std::string>> labels;
  const auto* given = message.labels();
  if (!given) return labels;
  for (const auto* one : *given) {
    const auto key = text(one->key());
    const auto value = text(one->value());
    if (key.empty() || key.size() > max_name_bytes || value.size() > max_name_bytes) continue;
    if (labels.size() == max_labels) break;
    labels.emplace_back(key, value);
  }
  const auto by_key = [](const auto& a, const auto& b) { return a.first < b.first; };
  std::stable_sort(labels.begin(), labels.end(), by_key);
  labels.erase(
      std::unique(labels.begin(), labels.end(), [](const auto& a, const auto& b) { return a.first == b.first; }),
      labels.end());
  return labels;
}

std::vector<std::uint32_t> devices_of(const fb::EngineAnnounce& message) {
  const auto given = elements(message.devices());
  return {given.begin(), given.begin() + static_cast<std::ptrdiff_t>(std::min(given.size(), max_devices))};
}

std::optional<kv_transfer> kv_transfer_of(const fb::EngineAnnounce& message) {
  const auto* given = message.kv_transfer();
  if (!given) return std::nullopt;
  const auto bounded = [](std::string_view name) { return std::string(name.substr(0, max_name_bytes)); };
  return kv_transfer{given->protocol(), bounded(text(given->connector())), bounded(text(given->engine_id())),
                     optional_of(given->bootstrap_port())};
}

std::optional<adapter_use> adapters_in(const fb::EngineLoad& message) {
  if (!message.adapters_running() && !message.adapters_waiting() && !message.max_adapters()) return std::nullopt;
  return adapter_use{sorted_names(message.adapters_running()), sorted_names(message.adapters_waiting()),
                     optional_of(message.max_adapters())};
}

}  // namespace infernex::router
