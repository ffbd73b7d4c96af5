#pragma once

#include "actors/proxy/group.hpp"

namespace infernex::proxy {

/// What is said of a group's engines and pairs on ix.v1.pd.<group>.state; counters and names are the caller's.
fb::PdStateT describe(const group_view& view, clock_point now);

}  // namespace infernex::proxy
