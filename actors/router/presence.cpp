#include "actors/router/presence.hpp"

namespace infernex::router {

presence::presence(bus& messages, std::string router, std::function<std::unique_ptr<fb::OriginT>()> next_origin)
    : messages_(messages), router_(std::move(router)), next_origin_(std::move(next_origin)) {}

void presence::on_tick(std::chrono::steady_clock::time_point now) {
  if (now < next_) return;
  next_ = now + std::chrono::seconds(1);
  publish(false);
}

void presence::announce() { publish(false); }

void presence::leave() { publish(true); }

void presence::publish(bool leaving) {
  fb::RouterAnnounceT said;
  said.origin = next_origin_();
  said.router = router_;
  said.leaving = leaving;
  // Lost while the bus is down: it is said again every second.
  messages_.publish(messages_.names().router_announce(router_), encode(said), lane::rpc);
}

}  // namespace infernex::router
