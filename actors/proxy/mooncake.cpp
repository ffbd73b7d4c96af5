// vLLM MooncakeConnector: both legs at once, matched by a transfer id. Decode must know the prefill engine's id, which
// its bootstrap endpoint tells and which is another one after each start of the engine.

#include "actors/proxy/protocol.hpp"

namespace infernex::proxy {
namespace {

constexpr std::uint16_t default_bootstrap_port = 8998;

/// `{"0":{"engine_id":"…"},…}`, keyed by data-parallel rank. Empty: not in there.
std::string_view engine_id_json(std::string_view bootstrap, std::uint32_t rank) {
  return find_value(find_value(bootstrap, std::to_string(rank)), "engine_id");
}

class mooncake final : public protocol {
 public:
  step begin(const attempt& at) override {
    if (!at.bootstrap.empty()) return on_bootstrap(at, at.bootstrap);
    step next;
    next.query_bootstrap = true;
    return next;
  }

  step on_bootstrap(const attempt& at, std::string_view answer) override {
    const auto& from = *at.pair.prefill;
    const auto rank = from.rank.value_or(0);
    const auto engine_id = engine_id_json(answer, rank);
    step next;
    if (!is_string(engine_id)) {
      next.problem = "its bootstrap endpoint names no engine of rank " + std::to_string(rank);
      return next;
    }
    const auto transfer = quoted("xfer-" + at.id);
    const auto port = std::to_string(from.bootstrap_port.value_or(default_bootstrap_port));
    const json_edit to_prefill{"kv_transfer_params",
                               R"({"do_remote_decode":true,"do_remote_prefill":false,"transfer_id":)" + transfer + "}"};
    const json_edit to_decode{"kv_transfer_params",
                              R"({"do_remote_decode":false,"do_remote_prefill":true,"remote_bootstrap_addr":)" +
                                  quoted("http://" + from.host() + ":" + port) + R"(,"remote_engine_id":)" +
                                  std::string(engine_id) + R"(,"transfer_id":)" + transfer + "}"};
    next.prefill = outgoing_leg{prefill_body(at.facts, at.body, {&to_prefill, 1}),
                                {{"X-data-parallel-rank", std::to_string(rank)}}};
    next.decode = outgoing_leg{decode_body(at.body, {&to_decode, 1}), {}};
    return next;
  }
};

}  // namespace

std::unique_ptr<protocol> make_mooncake() { return std::make_unique<mooncake>(); }

}  // namespace infernex::proxy
