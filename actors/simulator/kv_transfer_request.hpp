#pragma once

#include <cstdint>
#include <string>
#include <vector>

namespace infernex::simulator {

/// What a completion request says about KV that is to come from another engine, or to go to one.
struct kv_transfer_request {
  /// give: compute the prompt for another engine. take: it has been computed elsewhere.
  enum class part : std::uint8_t { none, give, take };
  part what = part::none;
  /// What both engines know the transfer by: the prefill's request id, a transfer id, a room. Empty while giving: our
  /// own request id.
  std::string key;
  /// The other engine; its id is empty where the protocol does not say it.
  std::string engine_id;
  std::string host;
  std::uint16_t port = 0;
  std::vector<std::uint32_t> blocks;
  /// Giving, layer-wise: leading tokens the other side has.
  std::uint32_t cached_tokens = 0;
  /// Taking, layer-wise: whom to ask for a prefill.
  std::string metaserver;
  /// Giving: the other side waits for it, so it is given whatever the first token is and however short the prompt.
  bool awaited = false;
};

}  // namespace infernex::simulator
