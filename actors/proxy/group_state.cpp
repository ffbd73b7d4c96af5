#include "actors/proxy/group_state.hpp"

#include <algorithm>

namespace infernex::proxy {

fb::PdStateT describe(const group_view& view, clock_point now) {
  fb::PdStateT state;
  for (const auto& m : view.members) {
    if (state.model.empty()) state.model = m.model;
    if (state.protocol == fb::KvProtocol::None) state.protocol = m.protocol;
    auto& one = *state.instances.emplace_back(std::make_unique<fb::PdInstanceT>());
    one.instance = m.engine.instance;
    one.url = m.engine.url;
    one.role = m.role;
    one.state = m.draining ? fb::EngineState::Draining : m.state;
    one.in_flight = static_cast<std::uint32_t>(std::max<std::int64_t>(0, m.load->requests));
    one.kv_transfer = std::make_unique<fb::KvTransferT>();
    one.kv_transfer->protocol = m.protocol;
    one.kv_transfer->connector = m.connector;
    one.kv_transfer->engine_id = m.engine.engine_id;
    if (m.engine.bootstrap_port) one.kv_transfer->bootstrap_port = *m.engine.bootstrap_port;
  }
  for (const auto& p : view.pairs) {
    auto& one = *state.pairs.emplace_back(std::make_unique<fb::PdPairT>());
    one.prefill = p.prefill;
    one.decode = p.decode;
    one.breaker = p.breaker;
    one.failures = p.failures;
    if (p.reopens)
      one.reopens_ms = static_cast<std::uint32_t>(
          std::max<std::int64_t>(0, std::chrono::duration_cast<std::chrono::milliseconds>(*p.reopens - now).count()));
  }
  return state;
}

}  // namespace infernex::proxy
