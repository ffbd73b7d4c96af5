#pragma once

#include "gateway/hand.hpp"

namespace infernex::gateway {

/// Finds what a request is for, and answers it.
http::task<void> dispatch(hand& at, http::request& in, http::responder& out);

}  // namespace infernex::gateway
