#pragma once

#include <chrono>
#include <cstddef>
#include <map>
#include <string>
#include <string_view>

namespace infernex::proxy {

/// What bootstrap endpoints have answered lately, by engine. An answer is true until the engine is started anew: it is
/// dropped when the engine announces another id or start, when a request that rested on it fails, and after a while.
class bootstrap_memory {
 public:
  using point = std::chrono::steady_clock::time_point;
  explicit bootstrap_memory(std::chrono::milliseconds keep = std::chrono::seconds(60), std::size_t max_engines = 1024)
      : keep_(keep), max_engines_(max_engines) {}

  /// Empty: ask. `life`: engine_ref::life().
  std::string find(const std::string& address, std::string_view life, point now);
  void put(const std::string& address, std::string life, std::string answer, point now);
  void forget(const std::string& address) { known_.erase(address); }

 private:
  struct entry {
    std::string life;
    std::string answer;
    point since;
  };
  std::chrono::milliseconds keep_;
  std::size_t max_engines_;
  std::map<std::string, entry> known_;
};

}  // namespace infernex::proxy
