#pragma once

#include <string>
#include <string_view>

#include "messages/result.hpp"

namespace infernex::indexer {

/// `GET /sources` as a table for people: a line a model, then a line an instance. Errors: malformed_input.
result<std::string> top_text(std::string_view sources);

/// The answer of `POST /match_sort` with `explain`, for people: the chain, then a line an instance, best first.
/// Errors: malformed_input.
result<std::string> explain_text(std::string_view answer);

/// The only model of `GET /sources`. Errors: malformed_input, not_found (there is none), invalid_request (several).
result<std::string> only_model(std::string_view sources);

}  // namespace infernex::indexer
