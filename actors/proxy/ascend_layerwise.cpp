// vllm-ascend MooncakeLayerwiseConnector: decode first. It allocates its blocks and asks the metaserver, that is us,
// for the prefill, which then pushes layer by layer.

#include <map>

#include "actors/proxy/protocol.hpp"

namespace infernex::proxy {
namespace {

class ascend_layerwise final : public protocol {
 public:
  bool asks_metaserver() const override { return true; }

  step begin(const attempt& at) override {
    const json_edit edit{"kv_transfer_params", R"({"do_remote_decode":false,"do_remote_prefill":true,"metaserver":)" +
                                                   quoted(at.metaserver) + "}"};
    step next;
    next.decode = outgoing_leg{decode_body(at.body, {&edit, 1}), {}};
    return next;
  }

  step on_metaserver(const attempt& at, std::string_view request_id, std::string_view params) override {
    step next;
    if (sent_) return next;
    // It tries three times: the last word of a child counts.
    children_.insert_or_assign(std::string(request_id), std::string(params));
    if (children_.size() < at.facts.prompts) return next;
    sent_ = true;
    std::string all = children_.begin()->second;
    if (at.facts.prompts > 1) {
      std::string each = "{";
      for (const auto& [child, of_child] : children_) {
        if (each.size() > 1) each += ',';
        (each += quoted(child) + ':') += of_child;
      }
      const json_edit batch{"batch_kv_transfer_params", each + '}'};
      all = edited(first_child(), {&batch, 1}).value_or("");
    }
    const json_edit edits[] = {{"min_tokens", "1"}, {"kv_transfer_params", std::move(all)}};
    next.prefill = outgoing_leg{prefill_body(at.facts, at.body, edits), {}};
    return next;
  }

 private:
  /// Of the first prompt; ids end in `-<prompt>`, so that the shortest, then least, is the first.
  const std::string& first_child() const {
    auto first = children_.begin();
    for (auto it = children_.begin(); it != children_.end(); ++it) {
      if (it->first.size() < first->first.size()) first = it;
    }
    return first->second;
  }

  std::map<std::string, std::string> children_;
  bool sent_ = false;
};

}  // namespace

std::unique_ptr<protocol> make_ascend_layerwise() { return std::make_unique<ascend_layerwise>(); }

}  // namespace infernex::proxy
