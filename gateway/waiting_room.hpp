#pragma once

#include <atomic>
#include <functional>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <unordered_map>

#include "actors/router/request_terms.hpp"
#include "actors/router/waiting_line.hpp"

namespace infernex::gateway {

/// Requests that wait for an engine to have room where the gateway decides itself: one line for all its threads, under
/// a lock that is touched only while something waits. Thread-safe.
class waiting_room {
 public:
  /// What is said to one who waits, on the thread that says it; it must not call back into the room.
  enum class word : std::uint8_t { go, make_room };
  using wake = std::function<void(word)>;
  using ticket = router::waiting_line::ticket;

  explicit waiting_room(const router::queue_settings& how) : how_(how), line_({how.max_requests, how.max_wait}) {}

  bool waits_for(std::string_view model) const;
  bool empty() const { return length_.load(std::memory_order_relaxed) == 0; }
  std::size_t length() const { return length_.load(std::memory_order_relaxed); }

  struct place {
    ticket who;
    std::size_t position;
  };
  /// What decides who can take it must live until the place is given back. Nothing: the line is full.
  std::optional<place> enter(router::waiting_line::request what, router::engine_wanted wanted, wake tell,
                             router::clock_point now);
  /// Ends the wait, or, after `go`, says that the request has its engine and counts there.
  void leave(ticket who);
  /// Tells as many to go as there is room for. `topology` may be null.
  void call(const router::topology* topology, const router::load_board& loads, router::clock_point now);

 private:
  struct guest {
    router::engine_wanted wanted;
    wake tell;
  };
  bool can_go(ticket who, const router::model_endpoints* engines, const router::load_board& loads,
              router::clock_point now) const;
  void note_length() { length_.store(line_.size(), std::memory_order_relaxed); }

  const router::queue_settings how_;
  mutable std::mutex guard_;
  router::waiting_line line_;
  std::unordered_map<ticket, guest> guests_;
  /// Told to go, and not counted at an engine yet; by model.
  std::unordered_map<ticket, std::string> called_;
  std::atomic<std::size_t> length_{0};
};

}  // namespace infernex::gateway
