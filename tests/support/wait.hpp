#pragma once

#include <chrono>
#include <thread>

namespace infernex::test {

/// Waits until `condition` holds; false if it does not within `limit`. For component tests, which have real
/// time in them: they wait for a condition with a deadline, never for a fixed time.
template <class Condition>
bool eventually(Condition condition, std::chrono::milliseconds limit = std::chrono::seconds(10)) {
  const auto deadline = std::chrono::steady_clock::now() + limit;
  while (!condition()) {
    if (std::chrono::steady_clock::now() > deadline) return false;
    std::this_thread::sleep_for(std::chrono::milliseconds(2));
  }
  return true;
}

}  // namespace infernex::test
