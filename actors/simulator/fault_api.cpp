#include "actors/simulator/fault_api.hpp"

#include <boost/json/array.hpp>
#include <boost/json/serialize.hpp>

namespace infernex::simulator {

namespace json = boost::json;

outage outage_of(const fault_rule& rule) {
  const auto what = rule.exit                         ? outage::kind::exit
                    : rule.kind == fault_kind::refuse ? outage::kind::refuse
                                                      : outage::kind::restart;
  return {what, std::chrono::milliseconds(rule.down_ms)};
}

std::string render_state(const engine_api& api) {
  const auto load = api.engine.load();
  json::array leases;
  for (const auto& [key, lease] : api.transfer.leases().all())
    leases.push_back({{"key", key}, {"blocks", lease.blocks.size()}, {"reading", lease.reading}});
  json::object state{{"engine_id", api.transfer.here().engine_id}, {"kv_port", api.transfer.here().port}};
  state["running"] = load.running;
  state["waiting"] = load.waiting;
  state["kv_blocks"] = {{"used", api.engine.cache().used()}, {"total", api.engine.cache().capacity()}};
  state["answering"] = api.answering;
  state["taking"] = api.transfer.taking();
  state["connections"] = api.connections();
  state["leases"] = std::move(leases);
  return json::serialize(state);
}

}  // namespace infernex::simulator
