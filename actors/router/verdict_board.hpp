#pragma once

#include <chrono>
#include <cstdint>
#include <map>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <utility>

#include "actors/router/load_board.hpp"
#include "messages/registry.hpp"

namespace infernex::router {

/// What diagnosis asks for an engine: the gravest that stands at any of its devices, or at its node as a whole.
struct asked_action {
  fb::VerdictAction action = fb::VerdictAction::Ok;
  /// For people: fault pattern and place; empty: nothing is asked for.
  std::string why;
  /// When it was raised, by the node's clock, nanoseconds since 1970.
  std::uint64_t since = 0;
};

/// Verdicts that stand, by node and device. One owner.
class verdict_board {
 public:
  /// A device's verdicts are let go when nobody has repeated them for `silence`: whoever raised them is gone, and would
  /// not clear them either. At most `most` places (devices and nodes) are kept; above, verdicts are refused.
  explicit verdict_board(std::chrono::milliseconds silence, std::size_t most = 65'536)
      : silence_(silence), most_(most) {}

  /// What stands at the place the message names. False: nothing has changed, or the message is old.
  bool on_verdict(const fb::Verdict& message, clock_point now);
  /// Lets go of what was not repeated; true: something was.
  bool on_tick(clock_point now);
  /// The bus was away: nobody could repeat anything.
  void touch(clock_point now);

  asked_action asked_of(std::string_view node, std::span<const std::uint32_t> devices) const;

  std::size_t places() const { return places_.size(); }
  std::uint64_t refused() const { return refused_; }

 private:
  /// Node, and device on it; none: the node as a whole.
  using place = std::pair<std::string, std::optional<std::uint32_t>>;
  struct standing {
    asked_action asked;
    std::string source;
    std::uint64_t epoch = 0;
    std::uint64_t sequence = 0;
    clock_point heard;
  };
  const standing* find(std::string_view node, std::optional<std::uint32_t> device) const;

  std::chrono::milliseconds silence_;
  std::size_t most_;
  std::map<place, standing> places_;
  std::uint64_t refused_ = 0;
};

}  // namespace infernex::router
