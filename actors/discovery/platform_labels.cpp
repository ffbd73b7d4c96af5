#include "actors/discovery/platform_labels.hpp"

namespace infernex::discovery {

void read_platform_labels(engine_descriptor& engine, bool role_known) {
  for (const auto& [key, value] : engine.labels) {
    if (key == fuyao_group_label && engine.pd_group.empty()) engine.pd_group = value;
    if (key != fuyao_role_label || role_known) continue;
    if (value == "prefill") engine.role = fb::EngineRole::Prefill;
    if (value == "decode") engine.role = fb::EngineRole::Decode;
  }
}

}  // namespace infernex::discovery
