#pragma once

#include <chrono>
#include <optional>

namespace infernex::nodes {

/// Blocks SIGINT, SIGTERM, SIGCHLD and SIGUSR1 (a supervisor gave up) for this thread and those it starts, so that they
/// can be waited for: call it before any thread exists.
void block_signals();

/// The next of them, or nothing at the deadline.
std::optional<int> wait_signal(std::chrono::milliseconds at_most);

/// Waits for any of them but SIGCHLD; which one.
int wait_for_end();

}  // namespace infernex::nodes
