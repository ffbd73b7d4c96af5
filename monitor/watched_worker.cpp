#include "monitor/watched_worker.hpp"

#include <chrono>
#include <exception>

namespace infernex::monitor {

std::uint64_t steady_now_ms() {
  const auto since = std::chrono::steady_clock::now().time_since_epoch();
  return static_cast<std::uint64_t>(std::chrono::duration_cast<std::chrono::milliseconds>(since).count());
}

watched_worker::watched_worker(std::shared_ptr<reader> unit) : state_(std::make_shared<shared>()) {
  state_->unit = std::move(unit);
  thread_ = std::thread([state = state_] { run(state); });
}

watched_worker::~watched_worker() {
  bool idle = false;
  {
    std::unique_lock lock(state_->guard);
    state_->ending = true;
    state_->changed.notify_all();
    idle = state_->changed.wait_for(lock, std::chrono::milliseconds(100), [this] { return !state_->busy; });
  }
  if (idle)
    thread_.join();
  else
    thread_.detach();
}

bool watched_worker::start(std::uint64_t now_ms) {
  const std::lock_guard lock(state_->guard);
  if (state_->busy) return false;
  state_->busy = true;
  state_->wanted = true;
  state_->began_ms = now_ms;
  state_->changed.notify_all();
  return true;
}

std::optional<watched_worker::finished> watched_worker::take() {
  const std::lock_guard lock(state_->guard);
  return std::exchange(state_->result, std::nullopt);
}

std::uint32_t watched_worker::busy_ms(std::uint64_t now_ms) const {
  const std::lock_guard lock(state_->guard);
  if (!state_->busy || now_ms <= state_->began_ms) return 0;
  return static_cast<std::uint32_t>(now_ms - state_->began_ms);
}

void watched_worker::run(const std::shared_ptr<shared>& state) {
  std::unique_lock lock(state->guard);
  for (;;) {
    state->changed.wait(lock, [&state] { return state->wanted || state->ending; });
    if (state->ending) {
      state->busy = false;
      state->changed.notify_all();
      return;
    }
    state->wanted = false;
    lock.unlock();
    reading_round found;
    try {
      found = state->unit->read();
    } catch (const std::exception& problem) {
      found = {};
      found.problems.push_back(state->unit->name() + ": " + problem.what());
    }
    lock.lock();
    state->result = finished{std::move(found), steady_now_ms()};
    state->busy = false;
    state->changed.notify_all();
  }
}

}  // namespace infernex::monitor
