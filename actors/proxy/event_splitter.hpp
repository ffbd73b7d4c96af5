#pragma once

#include <cstddef>
#include <optional>
#include <string>
#include <string_view>

namespace infernex::proxy {

/// Cuts a stream of server-sent events into whole events, whatever pieces it comes in. An event ends in an empty line.
class event_splitter {
 public:
  explicit event_splitter(std::size_t max_event = 1 << 20) : max_event_(max_event) {}

  /// More bytes; they must live until next() has given nothing.
  void feed(std::string_view piece) {
    if (held_.empty()) {
      rest_ = piece;
      return;
    }
    held_ += piece;
    joined_ = std::move(held_);
    held_.clear();
    rest_ = joined_;
  }
  /// The next whole event with its empty line; nothing: more bytes are needed.
  std::optional<std::string_view> next() {
    const auto end = end_of_event();
    if (end == 0) {
      held_ = rest_;
      rest_ = {};
      return std::nullopt;
    }
    const auto event = rest_.substr(0, end);
    rest_.remove_prefix(end);
    return event;
  }
  /// An event is over the bound.
  bool overflown() const { return held_.size() > max_event_; }
  void clear() {
    held_.clear();
    rest_ = {};
  }

 private:
  std::size_t end_of_event() const {
    for (auto at = rest_.find('\n'); at != std::string_view::npos; at = rest_.find('\n', at + 1)) {
      auto after = at + 1;
      if (after < rest_.size() && rest_[after] == '\r') ++after;
      if (after < rest_.size() && rest_[after] == '\n') return after + 1;
    }
    return 0;
  }

  std::size_t max_event_;
  std::string held_;
  std::string joined_;
  std::string_view rest_;
};

}  // namespace infernex::proxy
