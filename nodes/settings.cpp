#include "nodes/settings.hpp"

#include <charconv>
#include <iostream>

namespace infernex::nodes {

using namespace std::chrono_literals;

void read_settings(config::document& file, node_settings& into) {
  auto root = file.root();
  root.below("bus")
      .read("url", into.bus.url)
      .read("prefix", into.bus.prefix)
      .read("reconnect_wait", into.bus.reconnect_wait, 10ms, 60s)
      .read("connect_deadline", into.bus.connect_deadline, 100ms, 10min);
  root.below("log").read_choice("level", into.log_level,
                                {{"debug", log::level::debug},
                                 {"info", log::level::info},
                                 {"warn", log::level::warn},
                                 {"error", log::level::error}});
  root.read("drain_deadline", into.drain_deadline, 0ms, 10min);
  {
    auto up = root.below("up");
    up.read("engines", into.up.engines, 0, 256).read("nats", into.up.nats).read("faults", into.up.faults);
    std::string shape;
    up.read("pd", shape)
        .read_choice("kv_protocol", into.up.kv_protocol, {"nixl", "mooncake", "ascend", "ascend-layerwise", "sglang"});
    if (const auto pd = parse_pd_shape(shape))
      into.up.pd = *pd;
    else if (!shape.empty())
      up.complain("pd", "numbers of prefill and decode engines such as 2p2d, not \"" + shape + "\"");
    if (into.up.engines == 0 && !into.up.pd.any()) up.complain("engines", "none, and no `pd` either");
  }
  const bool with_gateway = root.has("gateway");
  read_gateway(root.below("gateway"), into.gateway);
  read_router(root.below("router"), into.router,
              with_gateway ? std::optional(into.gateway.route_timeout) : std::nullopt);
  read_indexer(root.below("indexer"), into.indexer);
  read_agent(root.below("agent"), into.agent);
  read_proxy(root.below("proxy"), into.proxy);
  read_simulator(root.below("simulator"), into.simulator);
  read_monitor(root.below("monitor"), into.monitor);
  read_diagnosis(root.below("diagnosis"), into.diagnosis);
}

std::optional<pd_shape> parse_pd_shape(std::string_view text) {
  constexpr std::uint32_t most = 128;
  pd_shape shape;
  const auto read = [&text](std::uint32_t& into, char letter) {
    const auto [end, problem] = std::from_chars(text.data(), text.data() + text.size(), into);
    if (problem != std::errc{} || end == text.data() + text.size() || (*end | 0x20) != letter) return false;
    text.remove_prefix(static_cast<std::size_t>(end - text.data()) + 1);
    return into >= 1 && into <= most;
  };
  if (!read(shape.prefill, 'p') || !read(shape.decode, 'd') || !text.empty()) return std::nullopt;
  return shape;
}

bool load_settings(const std::string& file, node_settings& into) {
  if (file.empty()) return true;
  auto document = config::document::load(file);
  if (!document) {
    std::cerr << file << ": " << render(document.failure()) << '\n';
    return false;
  }
  read_settings(*document, into);
  const auto problems = document->problems();
  for (const auto& one : problems) std::cerr << config::render(one) << '\n';
  return problems.empty();
}

}  // namespace infernex::nodes
