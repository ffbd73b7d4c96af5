#include "nodes/signals.hpp"

#include <pthread.h>
#include <signal.h>
#include <time.h>

namespace infernex::nodes {

namespace {
sigset_t handled() {
  sigset_t set;
  sigemptyset(&set);
  for (int number : {SIGINT, SIGTERM, SIGCHLD, SIGUSR1}) sigaddset(&set, number);
  return set;
}
}  // namespace

void block_signals() {
  const auto set = handled();
  pthread_sigmask(SIG_BLOCK, &set, nullptr);
  signal(SIGPIPE, SIG_IGN);  // NOLINT: a closed peer is an error code, not the end
}

std::optional<int> wait_signal(std::chrono::milliseconds at_most) {
  const auto set = handled();
  const timespec limit{at_most.count() / 1000, at_most.count() % 1000 * 1'000'000};
  const int number = sigtimedwait(&set, nullptr, &limit);
  if (number < 0) return std::nullopt;
  return number;
}

int wait_for_end() {
  for (;;) {
    const auto number = wait_signal(std::chrono::hours(1));
    if (number && *number != SIGCHLD) return *number;
  }
}

}  // namespace infernex::nodes
