#pragma once

#include "actors/proxy/protocol.hpp"

namespace infernex::proxy {

/// Prefill first; what it answers as kv_transfer_params goes to decode as it came, which then pulls the blocks.
class pull : public protocol {
 public:
  /// `prefill_edits`: members of the prefill request that are the connector's own.
  explicit pull(std::vector<json_edit> prefill_edits) : prefill_edits_(std::move(prefill_edits)) {}

  step begin(const attempt& at) override;
  step on_prefill(const attempt& at, std::string_view answer) override;
  std::optional<outgoing_leg> release(const attempt& at) const override;

 private:
  std::vector<json_edit> prefill_edits_;
  /// As prefill answered them; empty: it holds no blocks for this request.
  std::string held_;
};

}  // namespace infernex::proxy
