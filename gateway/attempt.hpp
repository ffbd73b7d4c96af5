#pragma once

#include <chrono>
#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "gateway/choice.hpp"
#include "messages/result.hpp"

namespace infernex::gateway {

using clock_point = std::chrono::steady_clock::time_point;

/// Engines that failed lately on this thread: passed over until their back-off has ended, while others can
/// take the request. Bounded: the entry that ends first makes room.
class engine_backoff {
 public:
  engine_backoff(std::chrono::milliseconds first, std::chrono::milliseconds most, std::size_t max_entries = 1024);

  /// Doubles the engine's back-off, from `first` up to `most`.
  void failed(std::string_view instance, clock_point now);
  void succeeded(std::string_view instance);
  bool out(std::string_view instance, clock_point now) const;
  bool empty() const { return entries_.empty(); }

 private:
  struct entry {
    clock_point until;
    std::chrono::milliseconds pause;
  };
  std::chrono::milliseconds first_;
  std::chrono::milliseconds most_;
  std::size_t max_entries_;
  std::map<std::string, entry, std::less<>> entries_;
};

/// Whether another engine may do better than one that ended a request this way, before its first byte. A
/// status that the engine gave for the request's own sake (4xx, 500) is the answer.
bool worth_retry(errc how);
bool worth_retry_status(unsigned status);

/// The engines tried for one request until its first byte: the choice, its runners-up, then whoever routing
/// names when asked again, up to a bound.
class attempts {
 public:
  explicit attempts(std::uint32_t most) : most_(most) {}

  /// New candidates, best first.
  void offer(std::vector<candidate> ranked);
  /// The next engine to try; nothing if candidates or attempts are used up. Engines in back-off come only
  /// when no other is left.
  std::optional<candidate> next(const engine_backoff& backoff, clock_point now);
  /// The engine given last has failed; `why` is for people (`refused the connection`).
  void failed(std::string_view why);

  bool exhausted() const { return count_ >= most_; }
  /// Engines tried so far, the present one included.
  std::uint32_t count() const { return count_; }
  const std::vector<std::string>& failures() const { return failed_; }
  /// `engine-0 refused the connection; engine-1 answered 503`, empty if none failed.
  const std::string& story() const { return story_; }

 private:
  std::uint32_t most_;
  std::uint32_t count_ = 0;
  std::string present_;
  std::vector<candidate> ranked_;
  std::vector<std::string> failed_;
  std::string story_;
};

/// Engines a routing query should leave out: those that failed this request, and those in back-off unless
/// nobody else of `ready` would be left.
std::vector<std::string> exclusions(const std::vector<std::string>& failed, const engine_backoff& backoff,
                                    const std::vector<std::string_view>& ready, clock_point now);

}  // namespace infernex::gateway
