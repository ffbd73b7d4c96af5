#pragma once

#include "gateway/session.hpp"

namespace infernex::gateway {

/// Finds the prompt's tokens by the configured chain and fills the session's route_request with its block
/// keys. Without tokens they are keys of its text.
http::task<void> find_prompt_keys(session& s);

}  // namespace infernex::gateway
