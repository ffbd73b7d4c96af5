#pragma once

#include <chrono>
#include <optional>

namespace infernex::proxy {

/// When the group's state goes to the bus: on a change, but seldom enough that a storm of failures is not one of
/// messages; what waited, as soon as it may; and in any case once a second.
class news_pace {
 public:
  using point = std::chrono::steady_clock::time_point;
  static constexpr std::chrono::milliseconds least{100};
  static constexpr std::chrono::milliseconds most{1'000};

  /// Whether to send now: there is a change.
  bool on_change(point now) {
    owed_ = true;
    return sent_if(!last_ || now - *last_ >= least, now);
  }
  /// Whether to send now: time has passed. To be asked every `least`.
  bool on_time(point now) { return sent_if(!last_ || (owed_ && now - *last_ >= least) || now - *last_ >= most, now); }

 private:
  bool sent_if(bool due, point now) {
    if (!due) return false;
    owed_ = false;
    last_ = now;
    return true;
  }

  std::optional<point> last_;
  bool owed_ = false;
};

}  // namespace infernex::proxy
