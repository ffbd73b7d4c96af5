#pragma once

#include <string>
#include <string_view>

#include "messages/result.hpp"

namespace infernex::router {

/// A RouteDecision as JSON (decode_to_json), for people: for each choice what was asked, a line a candidate with every
/// score x weight and the total, or what dropped it, and the choice with its reason. Errors: malformed_input.
result<std::string> explain_text(std::string_view decision);

}  // namespace infernex::router
