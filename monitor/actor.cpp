#include "monitor/actor.hpp"

#include "actors/runtime/log.hpp"
#include "monitor/watched_worker.hpp"

namespace infernex::monitor {

namespace {

struct monitor_state {
  std::shared_ptr<monitor_world> world;
  std::chrono::steady_clock::time_point next;
  bool end_told = false;
};

using monitor_pointer = monitor_actor::stateful_pointer<monitor_state>;

poll_time monitor_time() {
  const auto wall = std::chrono::system_clock::now().time_since_epoch();
  return {steady_now_ms(),
          static_cast<std::uint64_t>(std::chrono::duration_cast<std::chrono::nanoseconds>(wall).count())};
}

void on_monitor_tick(monitor_pointer self) {
  auto& state = self->state;
  auto& world = *state.world;
  const auto now = monitor_time();
  world.source->poll(now, [&](node_report&& report) { world.to->publish(std::move(report), now.wall_ns); });
  if (world.source->ended() && !std::exchange(state.end_told, true)) log::info("the recording has been played");
  // By the clock, not by the end of the last: intervals do not drift. A late one is skipped, not made up for.
  const auto at = self->clock().now();
  state.next = std::max(state.next + world.interval, at);
  self->delayed_send(self, std::chrono::duration_cast<std::chrono::milliseconds>(state.next - at), tick{});
}

monitor_actor::behavior_type run_monitor(monitor_pointer self, std::shared_ptr<monitor_world> world) {
  self->state.world = std::move(world);
  self->state.next = self->clock().now();
  self->send(self, tick{});
  return {[self](tick) { on_monitor_tick(self); }};
}

}  // namespace

monitor_actor spawn_monitor_actor(const runtime& process, std::shared_ptr<monitor_world> world) {
  return process.system.spawn(run_monitor, std::move(world));
}

}  // namespace infernex::monitor
