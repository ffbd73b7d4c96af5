// vLLM NixlConnector: prefill first, its kv_transfer_params go to decode as they came.

#include "actors/proxy/pull.hpp"

namespace infernex::proxy {
namespace {

constexpr std::string_view ask =
    R"({"do_remote_decode":true,"do_remote_prefill":false,"remote_engine_id":null,"remote_block_ids":null,)"
    R"("remote_host":null,"remote_port":null})";

}  // namespace

step pull::begin(const attempt& at) {
  auto edits = prefill_edits_;
  edits.push_back({"kv_transfer_params", std::string(ask)});
  step next;
  next.prefill = outgoing_leg{prefill_body(at.facts, at.body, edits), {}};
  return next;
}

step pull::on_prefill(const attempt& at, std::string_view answer) {
  const auto params = find_value(answer, "kv_transfer_params");
  step next;
  if (is_object(params)) {
    held_ = params;
    const json_edit edit{"kv_transfer_params", held_};
    next.decode = outgoing_leg{decode_body(at.body, {&edit, 1}), {}};
  } else if (params.empty() && !is_object(answer)) {
    next.problem = "its answer is no JSON object";
  } else {
    // A prompt shorter than a block, or an answer that ended with its first token: nothing is held, decode prefills.
    next.decode = outgoing_leg{plain_body(at.body), {}};
  }
  return next;
}

std::optional<outgoing_leg> pull::release(const attempt& at) const {
  if (held_.empty()) return std::nullopt;
  const json_edit edit{"kv_transfer_params", held_};
  return outgoing_leg{prefill_body(at.facts, at.body, {&edit, 1}), {}};
}

std::unique_ptr<protocol> make_nixl() { return std::make_unique<pull>(std::vector<json_edit>{}); }

}  // namespace infernex::proxy
