// SGLang: the same body to both legs at once, matched by bootstrap host, port and room. The prefill engine's answer
// is of no interest, but it must be let finish.

#include "actors/proxy/protocol.hpp"

namespace infernex::proxy {
namespace {

/// One value, or as many as there are prompts.
std::string repeated(std::uint32_t prompts, std::string_view json) {
  if (prompts == 1) return std::string(json);
  std::string out = "[";
  for (std::uint32_t i = 0; i < prompts; ++i) (out += i ? "," : "") += json;
  return out += ']';
}

class sglang final : public protocol {
 public:
  /// It refuses a request without a room to take the blocks from.
  bool decode_may_prefill() const override { return false; }
  step begin(const attempt& at) override {
    const auto& from = *at.pair.prefill;
    const auto prompts = at.facts.prompts;
    std::string rooms;
    for (std::uint32_t i = 0; i < prompts; ++i)
      (rooms += i ? "," : "") += std::to_string((at.random + i) & 0x7FFFFFFFFFFFFFFFULL);
    if (prompts > 1) rooms = '[' + rooms + ']';
    const auto port = from.bootstrap_port ? std::to_string(*from.bootstrap_port) : std::string("null");
    const json_edit edits[] = {{"bootstrap_host", repeated(prompts, quoted(from.host()))},
                               {"bootstrap_port", repeated(prompts, port)},
                               {"bootstrap_room", rooms}};
    const auto body = decode_body(at.body, edits);
    step next;
    next.prefill = outgoing_leg{body, {}};
    next.decode = outgoing_leg{body, {}};
    return next;
  }
};

}  // namespace

std::unique_ptr<protocol> make_sglang() { return std::make_unique<sglang>(); }

}  // namespace infernex::proxy
