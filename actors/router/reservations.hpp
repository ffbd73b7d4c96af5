#pragma once

#include <chrono>
#include <cstdint>
#include <deque>
#include <string>
#include <string_view>
#include <unordered_map>

#include "actors/router/load_board.hpp"

namespace infernex::router {

/// What decisions taken here have put on the load board, by request id, until the gateway that asked counts
/// the request in its own totals, or a time has passed. Bounded: above, the oldest is taken back early. One
/// owner; the board must outlive it.
class reservation_book {
 public:
  struct limits {
    std::chrono::milliseconds expiry{10'000};
    std::size_t max_open = 65'536;
  };
  reservation_book(load_board& board, limits bounds);
  explicit reservation_book(load_board& board) : reservation_book(board, limits{}) {}

  /// A second one for the same id (a retry elsewhere) replaces the first.
  void reserve(std::string_view request_id, slot_ref slot, load_share share, clock_point now);
  /// Does nothing if there is none.
  void drop(std::string_view request_id);
  void expire(clock_point now);

  std::size_t open() const { return by_id_.size(); }
  /// Taken back before their time for the bound.
  std::uint64_t shed() const { return shed_; }

 private:
  struct entry {
    slot_ref slot;
    load_share share;
    std::uint64_t number = 0;
  };
  struct due {
    clock_point at;
    std::string request_id;
    std::uint64_t number = 0;
  };
  void take_back(const std::string& request_id, std::uint64_t number);

  load_board& board_;
  limits bounds_;
  std::unordered_map<std::string, entry> by_id_;
  std::deque<due> order_;  // oldest first; entries dropped meanwhile are known by their number
  std::uint64_t next_number_ = 1;
  std::uint64_t shed_ = 0;
};

}  // namespace infernex::router
