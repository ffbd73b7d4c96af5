#pragma once

#include <simdjson.h>

namespace infernex::gateway {

/// Reads a whole value, which on-demand parsing alone would skip, so that all of its JSON is checked.
/// `depth`: of the value in its document, from 1. Errors: DEPTH_ERROR beyond `max_depth`, or what is wrong.
simdjson::error_code check_json(simdjson::ondemand::value value, int depth, int max_depth);

}  // namespace infernex::gateway
