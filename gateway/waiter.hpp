#pragma once

#include "actors/runtime/http/waiter.hpp"

namespace infernex::gateway {

using http::waiter;
using http::worker_timer;

}  // namespace infernex::gateway
