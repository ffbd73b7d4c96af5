#pragma once

#include <chrono>
#include <cstdint>
#include <deque>
#include <string>
#include <string_view>
#include <unordered_map>

#include "actors/router/load_board.hpp"
#include "messages/registry.hpp"

namespace infernex::router {

/// A line through measurements, of which older ones count less: with each new one, those before lose a share.
class fading_line {
 public:
  explicit fading_line(double keep = 0.98) : keep_(keep) {}
  void add(double x, double y);
  /// Nothing before five measurements. Neither is ever negative: where the best line has a negative slope it is level,
  /// where it has a negative base it goes through 0.
  struct line {
    double base;
    double slope;
  };
  std::optional<line> fit() const;

 private:
  double keep_;
  double n_ = 0, x_ = 0, y_ = 0, xx_ = 0, xy_ = 0;
  std::uint32_t count_ = 0;
};

/// What a request met at its engine when it was placed: the tokens to be prefilled up to its first token, and the KV
/// blocks in use, its own included in both.
struct speed_conditions {
  slot_ref slot;
  std::uint64_t tokens_ahead = 0;
  std::uint64_t blocks = 0;
};

/// Conditions at `slot` for a request that adds `share`, just before it does.
speed_conditions conditions_of(const load_board& board, slot_ref slot, load_share share, clock_point now);

/// How it was answered: what was not measured is absent.
struct speed_result {
  std::optional<double> ttft_ms;
  /// From the first token to the last.
  std::optional<double> decode_ms;
  std::optional<std::uint32_t> output_tokens;
};
/// Empty for a request that was not answered to its end.
std::optional<speed_result> speed_result_of(const fb::FinishedT& record);
std::optional<speed_result> speed_result_of(const fb::Finished& record);

/// Learns how fast each engine is from requests that have ended: time to first token by the tokens that had to be
/// prefilled before it, time per output token by the KV blocks in use. What it learns goes on the load board. Bounded;
/// one owner; the board must outlive it.
class speed_book {
 public:
  struct limits {
    std::size_t max_open = 65'536;
    std::chrono::milliseconds expiry{600'000};
    std::size_t max_engines = 4'096;
  };
  speed_book(load_board& board, limits bounds) : board_(board), bounds_(bounds) {}
  explicit speed_book(load_board& board) : speed_book(board, limits{}) {}

  void learn(const speed_conditions& met, const speed_result& answered);

  // For who does not keep the conditions itself.
  void routed(std::string_view request_id, const speed_conditions& met, clock_point now);
  /// Nothing is learned from unknown requests, and those without a result.
  void finished(std::string_view request_id, const std::optional<speed_result>& answered);
  bool knows(const std::string& request_id) const { return open_.contains(request_id); }
  void expire(clock_point now);
  std::size_t open() const { return open_.size(); }

 private:
  struct entry {
    speed_conditions met;
    std::uint64_t number;
  };
  struct due {
    clock_point at;
    std::string request_id;
    std::uint64_t number;
  };
  struct engine {
    std::uint32_t generation = 0;
    fading_line ttft;
    fading_line tpot;
    std::optional<double> mean_ttft, mean_tpot, mean_output;
  };
  load_board& board_;
  limits bounds_;
  std::unordered_map<std::string, entry> open_;
  std::deque<due> order_;
  std::uint64_t next_number_ = 1;
  std::unordered_map<std::uint32_t, engine> engines_;  // by slot index
};

}  // namespace infernex::router
