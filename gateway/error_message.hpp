#pragma once

#include <string>
#include <string_view>

namespace infernex::gateway {

/// `error.message` of an error in OpenAI's shape; empty if it is none.
std::string error_message(std::string_view json);

}  // namespace infernex::gateway
