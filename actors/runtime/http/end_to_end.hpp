#pragma once

#include <span>
#include <string_view>

#include "actors/runtime/http/types.hpp"

namespace infernex::http {

/// The fields that are not for this hop alone (RFC 9110 section 7.6.1: those known to be, and those that a Connection
/// field declares), without `others` (lower case).
fields end_to_end(const fields& headers, std::span<const std::string_view> others);

/// Case-insensitive.
bool same_name(std::string_view a, std::string_view b);

}  // namespace infernex::http
