#pragma once

#include <string>
#include <utility>
#include <vector>

#include "actors/runtime/http/types.hpp"

namespace infernex::gateway {

/// The request's headers that routing plugins may look at, names in lower case: only those that say something about
/// routing, at most 1 KiB of each. Of secrets (authorization, cookie) hashes are told in their place, which is enough
/// to send equal ones to the same engine; a short secret can be guessed from its hash by who reads the bus.
std::vector<std::pair<std::string, std::string>> routing_headers(const http::fields& from_client);

}  // namespace infernex::gateway
