#pragma once

#include <string>
#include <string_view>

#include "gateway/relay.hpp"

namespace infernex::gateway {

struct pair_relayed {
  /// If not empty, nothing has begun, for this reason: another way is to be taken.
  std::string unusable;
  relayed how;
};

/// `pd: embedded`: runs the request by a group from this thread. What it counts at engines follows the pairs that are
/// really used.
http::task<pair_relayed> relay_pair(session& s, const candidate& to, std::string_view upstream_path);

}  // namespace infernex::gateway
