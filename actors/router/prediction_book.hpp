#pragma once

#include <list>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "actors/router/prediction.hpp"

namespace infernex::router {

/// Who has computed a request that ended with this status at this engine: nobody, if it ended in an error. A prediction
/// that outlived its engine's 429 would draw the retry back there.
inline std::string_view computed_by(std::string_view instance, unsigned status) {
  return status >= 400 ? std::string_view{} : instance;
}

/// Which open request made which prediction, so that it can follow the request when that is served elsewhere, or
/// nowhere. Bounded by number and bytes: above, the oldest can no longer follow. One owner; the index must outlive
/// it.
class prediction_book {
 public:
  struct limits {
    std::size_t max_open = 0;
    std::uint64_t max_bytes = 0;
  };
  prediction_book(prediction_index& index, limits bounds) : index_(index), bounds_(bounds) {}
  /// With the bytes that the index's settings leave to it.
  explicit prediction_book(prediction_index& index) : prediction_book(index, {65'536, index.how().book_bytes()}) {}

  /// Records the prediction; one that the same request made elsewhere is withdrawn.
  void routed(std::string_view request_id, std::string_view model, fb::KeyMode mode, std::string_view instance,
              std::vector<prediction_index::block_key> keys, clock_point now);
  /// The request has ended, computed by `instance` (empty: by nobody; see computed_by).
  void finished(std::string_view request_id, std::string_view instance, clock_point now);
  /// The same, computed where it was routed.
  void finished_as_routed(std::string_view request_id);
  /// Requests nobody has reported the end of are forgotten once their predictions have expired.
  void expire(clock_point now);

  std::size_t open() const { return by_id_.size(); }
  std::uint64_t bytes() const { return bytes_; }
  /// Requests forgotten early for a bound.
  std::uint64_t shed() const { return shed_; }

 private:
  struct entry {
    std::string request_id;
    std::string model;
    std::string instance;
    fb::KeyMode mode;
    prediction_index::recorded made;
    std::vector<prediction_index::block_key> keys;
  };
  using position = std::list<entry>::iterator;
  static std::uint64_t cost(const entry& e);
  void withdraw(const entry& e);
  void erase(position at);

  prediction_index& index_;
  limits bounds_;
  std::list<entry> entries_;  // oldest first
  /// The names are the entries' own.
  std::unordered_map<std::string_view, position> by_id_;
  std::uint64_t bytes_ = 0;
  std::uint64_t shed_ = 0;
};

}  // namespace infernex::router
