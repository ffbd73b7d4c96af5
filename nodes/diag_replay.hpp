#pragma once

#include <functional>
#include <string>

#include "diagnosis/report.hpp"
#include "messages/result.hpp"

namespace infernex::nodes {

/// What the rules that are compiled in say of a recording, in its own time: each change to `tell`, and what stands at
/// its end. Messages of other kinds are left out; a recording that breaks off ends there. Errors: not_found,
/// malformed_input.
result<diagnosis::fleet_report> replay_recording(const std::string& file,
                                                 const std::function<void(const diagnosis::verdict&)>& tell);

}  // namespace infernex::nodes
