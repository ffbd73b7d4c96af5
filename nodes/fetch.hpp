#pragma once

#include <chrono>
#include <string>

#include "messages/result.hpp"

namespace infernex::nodes {

/// One HTTP call, for commands: the body of an answer with status 200. Blocks. Errors: those of the HTTP client, and
/// malformed_input with what the server said for any other status.
result<std::string> fetch(const std::string& method, const std::string& base, const std::string& path,
                          const std::string& body, std::chrono::milliseconds timeout);

}  // namespace infernex::nodes
