#include "gateway/waiting_room.hpp"

#include <algorithm>

namespace infernex::gateway {

bool waiting_room::waits_for(std::string_view model) const {
  if (empty()) return false;
  const std::lock_guard lock(guard_);
  return line_.waits_for(model);
}

std::optional<waiting_room::place> waiting_room::enter(router::waiting_line::request what, router::engine_wanted wanted,
                                                       wake tell, router::clock_point now) {
  const std::lock_guard lock(guard_);
  const auto got = line_.admit(std::move(what), now);
  if (got.evicted) {
    const auto it = guests_.find(*got.evicted);
    it->second.tell(word::make_room);
    guests_.erase(it);
  }
  if (!got.taken) return std::nullopt;
  guests_.emplace(*got.taken, guest{wanted, std::move(tell)});
  note_length();
  return place{*got.taken, line_.position(*got.taken)};
}

void waiting_room::leave(ticket who) {
  const std::lock_guard lock(guard_);
  line_.leave(who);
  guests_.erase(who);
  called_.erase(who);
  note_length();
}

bool waiting_room::can_go(ticket who, const router::model_endpoints* engines, const router::load_board& loads,
                          router::clock_point now) const {
  if (!engines || engines->ready_count() == 0) return true;  // and hears why
  const auto& wanted = guests_.at(who).wanted;
  return std::any_of(engines->endpoints.begin(), engines->endpoints.end(), [&](const auto& engine) {
    return router::could_take(engine, wanted) && router::room_for(loads.read(engine.slot, now), how_.saturated) > 0;
  });
}

void waiting_room::call(const router::topology* topology, const router::load_board& loads, router::clock_point now) {
  if (empty()) return;
  const std::lock_guard lock(guard_);
  for (const auto& model : line_.models()) {
    const auto* engines = topology ? topology->find(model) : nullptr;
    auto left = static_cast<std::int64_t>(line_.size());
    if (engines && engines->ready_count() != 0)
      left = router::room_for_all(*engines, loads, how_.saturated, now) -
             std::count_if(called_.begin(), called_.end(), [&](const auto& one) { return one.second == model; });
    for (; left > 0; --left) {
      const auto who = line_.next(model, [&](ticket one) { return can_go(one, engines, loads, now); });
      if (!who) break;
      const auto it = guests_.find(*who);
      called_.emplace(*who, model);
      it->second.tell(word::go);
      guests_.erase(it);
    }
  }
  note_length();
}

}  // namespace infernex::gateway
