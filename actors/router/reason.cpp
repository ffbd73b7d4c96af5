#include "actors/router/reason.hpp"

#include <cmath>

namespace infernex::router {

namespace {

void append_load(std::string& out, const load_reading& load) {
  if (load.kv_usage)
    out.append(", kv ").append(std::to_string(std::lround(*load.kv_usage * 100))).append(" %");
  else
    out += ", kv not measured";
  if (load.waiting)
    out.append(", waiting ").append(std::to_string(*load.waiting));
  else
    out += ", waiting not measured";
  out.append(", in flight ").append(std::to_string(load.in_flight));
}

}  // namespace

std::string reason_for_none(const model_endpoints& of, std::string_view adapter, const left_out& why) {
  const bool some_ready = why.other_role + why.without_adapter + why.excluded != 0;
  std::string out = "no engine of model " + of.model + (some_ready ? " can take this request" : " is ready");
  const char* separator = ": ";
  const auto count = [&](std::uint32_t n, std::string_view what) {
    if (n == 0) return;
    out.append(separator).append(std::to_string(n)).append(" ").append(what);
    separator = ", ";
  };
  const auto in_state = [&](fb::EngineState s) { return why.by_state[static_cast<std::size_t>(s)]; };
  count(in_state(fb::EngineState::Starting), "starting");
  count(in_state(fb::EngineState::Draining), "draining");
  count(in_state(fb::EngineState::Down), "down");
  count(in_state(fb::EngineState::Unknown), "in an unknown state");
  count(why.other_role, "for prefill or decode only");
  count(why.without_adapter, "without adapter " + std::string(adapter));
  count(why.excluded, "excluded after failing it");
  if (of.endpoints.empty()) out += ": none is known";
  return out;
}

std::string reason_for_choice(const choice_facts& facts, const scored& chosen, std::string_view index_unknown_because) {
  std::string out;
  out.reserve(160);
  const std::string_view instance = chosen.to->instance;
  out.append(name(facts.how));
  if (facts.how == strategy::round_robin) {
    out.append(": ").append(instance).append(" is next of ").append(std::to_string(facts.candidates));
    return out;
  }
  if (facts.how == strategy::kv_aware && !facts.index_used) {
    out += chosen.by_prediction ? " by prediction (" : " by load only (";
    if (facts.blocks == 0)
      out += "no cacheable block keys";
    else
      out += index_unknown_because.empty() ? std::string_view("the index is not known") : index_unknown_because;
    out += ")";
  }
  out.append(": ").append(instance);
  if (facts.index_used) out.append(" holds ").append(std::to_string(chosen.overlap_blocks));
  if (chosen.by_prediction)
    out.append(facts.index_used ? ", predicted " : " predicted ").append(std::to_string(chosen.predicted_blocks));
  if (facts.index_used || chosen.by_prediction)
    out.append(" of ").append(std::to_string(facts.blocks)).append(" blocks");
  append_load(out, facts.load);
  return out;
}

}  // namespace infernex::router
