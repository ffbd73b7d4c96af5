#include "actors/indexer/readiness.hpp"

#include <algorithm>

namespace infernex::indexer {

namespace {

std::string milliseconds(std::chrono::steady_clock::duration span) {
  return std::to_string(std::chrono::duration_cast<std::chrono::milliseconds>(span).count()) + " ms";
}

}  // namespace

void readiness::on_bus(bool connected, time_point now) {
  // Patience with sources begins when some can be heard of.
  if (connected && !began_) began_ = now;
  if (!connected)
    connected_since_.reset();
  else if (!connected_since_)
    connected_since_ = now;
}

bool readiness::on_sources(std::size_t known, std::size_t waiting, time_point now) {
  if (caught_up_ || !connected_since_) return false;
  if (known > known_) newest_at_ = now;
  known_ = known;
  const auto took = now - *began_;
  const auto of_all = std::to_string(waiting) + " of " + std::to_string(known) + " sources not exact";
  if (took >= settings_.patience) {
    reason_ = "answering after " + milliseconds(settings_.patience) + " with " + of_all;
  } else if (now - std::max(*connected_since_, newest_at_) <
             (known == 0 ? settings_.listen_alone : settings_.listen_first)) {
    reason_ = "listening for announcements";
    return false;
  } else if (waiting != 0) {
    reason_ = of_all;
    return false;
  } else {
    reason_ = "all " + std::to_string(known) + " sources exact after " + milliseconds(took);
  }
  caught_up_ = true;
  return true;
}

}  // namespace infernex::indexer
