#include "actors/router/prediction_book.hpp"

namespace infernex::router {

std::uint64_t prediction_book::cost(const entry& e) {
  // With the nodes of list and map.
  return sizeof(entry) + 64 + e.request_id.size() + e.model.size() + e.instance.size() +
         e.keys.capacity() * sizeof(e.keys[0]);
}

void prediction_book::withdraw(const entry& e) { index_.withdraw(e.model, e.mode, e.instance, e.keys, e.made); }

void prediction_book::erase(position at) {
  bytes_ -= cost(*at);
  by_id_.erase(at->request_id);
  entries_.erase(at);
}

void prediction_book::routed(std::string_view request_id, std::string_view model, fb::KeyMode mode,
                             std::string_view instance, std::vector<prediction_index::block_key> keys,
                             clock_point now) {
  if (!index_.how().enabled || keys.empty()) return;
  if (const auto known = by_id_.find(request_id); known != by_id_.end()) {
    if (known->second->instance != instance) withdraw(*known->second);
    erase(known->second);
  }
  const auto made = index_.record(model, mode, instance, keys, now);
  if (request_id.empty()) return;
  const auto at = entries_.insert(entries_.end(), {std::string(request_id), std::string(model), std::string(instance),
                                                   mode, made, std::move(keys)});
  by_id_.emplace(at->request_id, at);
  bytes_ += cost(*at);
  while (entries_.size() > bounds_.max_open || bytes_ > bounds_.max_bytes) {
    erase(entries_.begin());
    ++shed_;
  }
}

void prediction_book::finished(std::string_view request_id, std::string_view instance, clock_point now) {
  const auto known = by_id_.find(request_id);
  if (known == by_id_.end()) return;
  const auto& e = *known->second;
  if (e.instance != instance) {
    withdraw(e);
    if (!instance.empty()) index_.record(e.model, e.mode, instance, e.keys, now);
  }
  erase(known->second);
}

void prediction_book::finished_as_routed(std::string_view request_id) {
  if (const auto known = by_id_.find(request_id); known != by_id_.end()) erase(known->second);
}

void prediction_book::expire(clock_point now) {
  while (!entries_.empty() && entries_.front().made.at + index_.how().ttl <= now) erase(entries_.begin());
}

}  // namespace infernex::router
