#pragma once

#include <string_view>

#include "actors/discovery/engine_descriptor.hpp"

namespace infernex::discovery {

/// openFuyao's words for an engine, as its charts set them on engines' pods.
inline constexpr std::string_view fuyao_role_label = "openfuyao.com/pdRole";
inline constexpr std::string_view fuyao_group_label = "openfuyao.com/pdGroupID";

/// Takes from the labels what was not said otherwise: the role (unless `role_known`) and the prefill/decode group
/// (unless there is one). A word that is no role of ours (`leader`) changes nothing: policies read the label itself.
void read_platform_labels(engine_descriptor& engine, bool role_known);

}  // namespace infernex::discovery
