#include "actors/router/reason.hpp"

#include <charconv>
#include <cmath>

namespace infernex::router {

namespace {

/// Without the allocation of std::to_string: this is on the way of every request.
std::string& append_number(std::string& out, long long value) {
  char digits[24];
  const auto end = std::to_chars(digits, digits + sizeof digits, value).ptr;
  return out.append(digits, static_cast<std::size_t>(end - digits));
}

void append_load(std::string& out, const load_reading& load) {
  if (load.kv_usage)
    append_number(out.append(", kv "), std::lround(*load.kv_usage * 100)).append(" %");
  else
    out += ", kv not measured";
  if (load.waiting)
    append_number(out.append(", waiting "), *load.waiting);
  else
    out += ", waiting not measured";
  append_number(out.append(", in flight "), load.in_flight);
}

/// Why a prompt was or was not computed by an engine of its own.
void append_division(std::string& out, const choice_facts& facts, const decision& made) {
  const auto& serving = *made.serving.ranked.front().to;
  const bool pair = !made.prefill.ranked.empty();
  if (!pair && serving.role != fb::EngineRole::Decode) return;
  if (pair)
    out.append(", prefills for ").append(serving.instance);
  else
    append_number(out.append(", computes "), static_cast<long long>(facts.uncached_tokens))
        .append(" prompt tokens itself");
  if (!made.weighed) return;
  const auto& [prefill, as_pair, alone] = *made.weighed;
  append_number(out.append(" (cost "), std::llround(pair ? as_pair : alone));
  if (!pair)
    append_number(out.append(", with ").append(prefill->instance).append(" "), std::llround(as_pair));
  else if (std::isfinite(alone))
    append_number(out.append(", ").append(serving.instance).append(" alone "), std::llround(alone));
  out += ")";
}

}  // namespace

void append_reason_for_none(std::string& out, const model_endpoints& of, std::string_view adapter,
                            const left_out& why) {
  const bool left_out = why.isolated + why.other_role + why.without_adapter + why.excluded + why.filtered != 0;
  const bool some_ready = left_out || of.ready_count() != 0;
  out.append("no engine of model ").append(of.model).append(some_ready ? " can take this request" : " is ready");
  const char* separator = ": ";
  const auto count = [&](std::uint32_t n, std::string_view what) {
    if (n == 0) return;
    append_number(out.append(separator), n).append(" ").append(what);
    separator = ", ";
  };
  const auto in_state = [&](fb::EngineState s) { return why.by_state[static_cast<std::size_t>(s)]; };
  count(in_state(fb::EngineState::Starting), "starting");
  count(in_state(fb::EngineState::Draining), "draining");
  count(in_state(fb::EngineState::Down), "down");
  count(in_state(fb::EngineState::Unknown), "in an unknown state");
  count(why.isolated, "isolated by verdicts on their accelerators");
  count(why.other_role, "for prefill or decode only");
  count(why.without_adapter, "without adapter " + std::string(adapter));
  count(why.excluded, "excluded after failing it");
  count(why.filtered, "filtered out");
  if (some_ready && !left_out) out += ": there is no profile of the name it asks for";
  if (of.endpoints.empty()) out += ": none is known";
}

void append_reason_for_choice(std::string& out, const choice_facts& facts, const decision& made,
                              const load_reading& load, std::string_view index_unknown_because) {
  const auto& serving = made.serving.ranked.front();
  const auto& prefills = *made.prefills();
  const bool without_scores = made.serving.scorers.empty() && !facts.uses_cache;
  out.append(facts.strategy);
  if (without_scores) {
    out.append(": ").append(serving.to->instance).append(facts.in_turn ? " is next of " : ", chosen of ");
    append_number(out, static_cast<long long>(made.serving.candidates));
  } else {
    if (facts.uses_cache && !made.index_used) {
      out += made.by_prediction ? " by prediction (" : " by load only (";
      if (facts.blocks == 0)
        out += "no cacheable block keys";
      else
        out += index_unknown_because.empty() ? std::string_view("the index is not known") : index_unknown_because;
      out += ")";
    }
    out.append(": ").append(prefills.to->instance);
    if (made.index_used) append_number(out.append(" holds "), prefills.overlap_blocks);
    if (made.by_prediction)
      append_number(out.append(made.index_used ? ", predicted " : " predicted "), prefills.predicted_blocks);
    if (made.index_used || made.by_prediction) append_number(out.append(" of "), facts.blocks).append(" blocks");
  }
  append_division(out, facts, made);
  if (!without_scores) append_load(out, load);
}

}  // namespace infernex::router
