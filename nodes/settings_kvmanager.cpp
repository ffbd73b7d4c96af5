#include "nodes/settings.hpp"

namespace infernex::nodes {

using namespace std::chrono_literals;

void read_kvmanager(config::section& router, std::optional<router::kvmanager_settings>& into) {
  const bool given = router.has("kvmanager");
  auto at = router.below("kvmanager");
  if (!given) return;
  auto& manager = into.emplace();
  at.require("url")
      .read("url", manager.url)
      .read("port", manager.port, 1, 65'535)
      .read("matchPath", manager.match_path)
      .read("timeout", manager.timeout, 1ms, 60s);
  if (const auto mistake = find_mistake(manager); !mistake.key.empty() && at.has(mistake.key))
    at.complain(mistake.key, mistake.message);
}

}  // namespace infernex::nodes
