#include <algorithm>

#include "actors/router/plugins/all.hpp"
#include "actors/router/plugins/decode_engines.hpp"

namespace infernex::router::plugins {
namespace {

/// A barrier before decode engines: drops those whose KV blocks in use, with this prompt's, are more than a share of
/// what they have, unless nobody would be left. In use is what was measured or what the routers count there, whichever
/// is more; what is left free is for the tokens of the answers, whose number nobody knows. Past it vLLM gives a running
/// request's blocks up, and has it computed anew, here or (vllm-ascend) by another pair.
///
/// Also drops decode engines that cannot compute a prompt, while pairs are compared and their group has no prefill
/// engine.
class decode_room final : public filter {
 public:
  explicit decode_room(parameters& p) {
    p.read("share", share_, 0.01, 1, "of a decode engine's KV blocks that may be in use, with those of the request");
  }
  bool keeps_all(const decision_context& context, std::span<const candidate> all) override {
    return std::none_of(all.begin(), all.end(),
                        [&](const candidate& c) { return is_stranded(context, c) || is_full(context, c); });
  }
  void apply(const decision_context& context, std::vector<candidate>& kept) override {
    std::erase_if(kept, [&](const candidate& c) { return is_stranded(context, c); });
    const auto full = [&](const candidate& c) { return is_full(context, c); };
    if (!std::all_of(kept.begin(), kept.end(), full)) std::erase_if(kept, full);
  }

 private:
  static bool is_stranded(const decision_context& context, const candidate& c) {
    return !computes_prompts(*c.to) && context.offers && !context.offers->find(c.to->group);
  }
  bool is_full(const decision_context& context, const candidate& c) const {
    if (c.to->role != fb::EngineRole::Decode) return false;
    const auto capacity = kv_capacity(*c.to, context.request.block_size);
    if (!capacity) return false;
    const auto used = std::max(static_cast<double>(c.load.active_blocks), c.load.kv_usage.value_or(0) * *capacity);
    return used + static_cast<double>(context.request.prompt_blocks()) > share_ * *capacity;
  }

  double share_ = 0.9;
};

}  // namespace

plugin_type decode_room_filter() {
  return {"decode-room-filter", "no decode engine that has no room for the prompt's KV blocks", "InferNex",
          [](parameters& p) -> plugin_type::made { return std::make_unique<decode_room>(p); }};
}

}  // namespace infernex::router::plugins
