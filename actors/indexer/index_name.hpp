#pragma once

#include <optional>
#include <string>
#include <string_view>

namespace infernex::indexer {

inline constexpr std::string_view default_tenant = "default";

/// A tenant's model, as HTTP callers name it.
struct tenant_model {
  std::string model;
  std::string tenant{default_tenant};
  friend bool operator==(const tenant_model&, const tenant_model&) = default;
};

/// The model name under which a tenant's blocks are indexed, and from which its block keys are made: the model itself
/// for the tenant `default` (or an empty one), else `<model>@tenant:<tenant>`. So tenants share neither index nor keys.
/// Nothing if the names could be mistaken for another pair, or are empty, over 400 bytes, or hold control characters.
std::optional<std::string> index_name(std::string_view model, std::string_view tenant);

/// The inverse.
tenant_model split_index_name(std::string_view name);

}  // namespace infernex::indexer
