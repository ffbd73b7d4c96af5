#include "actors/router/reservations.hpp"

namespace infernex::router {

reservation_book::reservation_book(load_board& board, limits bounds) : board_(board), bounds_(bounds) {}

void reservation_book::reserve(std::string_view request_id, slot_ref slot, load_share share, clock_point now) {
  std::string id(request_id);
  drop(id);
  while (!order_.empty() && order_.size() >= bounds_.max_open) {
    const auto oldest = std::move(order_.front());
    order_.pop_front();
    const auto before = by_id_.size();
    take_back(oldest.request_id, oldest.number);
    shed_ += before - by_id_.size();
  }
  board_.reserve(slot, share);
  order_.push_back({now + bounds_.expiry, id, next_number_});
  by_id_.emplace(std::move(id), entry{slot, share, next_number_++});
}

void reservation_book::take_back(const std::string& request_id, std::uint64_t number) {
  const auto it = by_id_.find(request_id);
  if (it == by_id_.end() || it->second.number != number) return;
  board_.unreserve(it->second.slot, it->second.share);
  by_id_.erase(it);
}

void reservation_book::drop(std::string_view request_id) {
  const auto it = by_id_.find(std::string(request_id));
  if (it == by_id_.end()) return;
  board_.unreserve(it->second.slot, it->second.share);
  by_id_.erase(it);
}

void reservation_book::expire(clock_point now) {
  while (!order_.empty() && order_.front().at <= now) {
    const auto oldest = std::move(order_.front());
    order_.pop_front();
    take_back(oldest.request_id, oldest.number);
  }
}

}  // namespace infernex::router
