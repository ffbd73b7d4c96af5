#include "nodes/settings.hpp"

namespace infernex::nodes {

using namespace std::chrono_literals;

void read_kvmanager(config::section& router, std::optional<router::kvmanager_settings>& into,
                    std::optional<std::chrono::milliseconds> route_timeout) {
  const bool given = router.has("kvmanager");
  auto at = router.below("kvmanager");
  if (!given) return;
  auto& manager = into.emplace();
  at.require("url")
      .read("url", manager.url)
      .read("port", manager.port, 1, 65'535)
      .read("matchPath", manager.match_path)
      .read("timeout", manager.timeout, 1ms, 60s)
      .read("max_wait", manager.max_wait, 1ms, 60s);
  if (const auto wait = wait_of(manager); route_timeout && wait >= *route_timeout)
    at.complain(at.has("max_wait") ? "max_wait" : "timeout",
                "the lesser of timeout and max_wait, " + std::to_string(wait.count()) +
                    " ms, must be less than gateway.route_timeout, " + std::to_string(route_timeout->count()) +
                    " ms: the gateway would not wait for the router's answer");
  if (const auto mistake = find_mistake(manager); !mistake.key.empty() && at.has(mistake.key))
    at.complain(mistake.key, mistake.message);
}

}  // namespace infernex::nodes
