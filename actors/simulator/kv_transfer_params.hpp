#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include <boost/json/object.hpp>

#include "actors/simulator/openai_request.hpp"

namespace infernex::simulator {

// The parameters that engines and a proxy hand each other, in the spelling of each connector: vLLM's NixlConnector and
// MooncakeConnector, vllm-ascend's MooncakeConnector and MooncakeLayerwiseConnector, SGLang's bootstrap fields.

/// Where an engine's second listener is.
struct kv_place {
  std::string engine_id;
  std::string host;
  std::uint16_t port = 0;
};

/// What a prefill engine offers when its prompt is computed.
struct kv_offer {
  std::string request_id;
  std::vector<std::uint32_t> blocks;
  std::uint32_t block_size = 0;
  std::uint32_t prompt_tokens = 0;
  token_id last_token = 0;
};

/// The `kv_transfer_params` of a prefill engine's answer; null where the protocol has none, or there is no whole block.
boost::json::value offered_params(transfer_protocol protocol, const kv_place& here, const kv_offer& offer);

/// What a layer-wise decode engine posts to the metaserver. `cached`: leading prompt tokens it has already.
std::string metaserver_request(const kv_place& here, std::string_view request_id, std::span<const std::uint32_t> blocks,
                               std::uint32_t block_size, std::uint32_t cached);

/// The answer of a bootstrap server's /query, by data-parallel rank.
std::string render_query(const kv_place& here);

/// Reads `kv_transfer_params` (and SGLang's bootstrap fields) as an engine of these settings understands them. What is
/// not for it, it leaves alone: an engine without connector, or of the other role, answers by itself.
parsed<kv_transfer_request> parse_transfer(const boost::json::object& body, const kv_transfer_settings& engine);

/// The same of a request with so many prompts, one each; none: it is answered without a transfer. Two protocols
/// transfer several: SGLang, whose fields are lists then, and the layer-wise one, whose prefill engine is told of each
/// in `batch_kv_transfer_params`, by the names that the decode engine has for them, which end in `-<prompt>`.
parsed<std::vector<kv_transfer_request>> parse_transfers(const boost::json::object& body,
                                                         const kv_transfer_settings& engine, std::size_t prompts);

// Between simulated engines, on the second listener.

struct kv_pull {
  /// Request id, transfer id or room.
  std::string key;
  /// Empty: whichever engine answers.
  std::string engine_id;
  /// Blocks as the parameters named them; none where the protocol names none.
  std::vector<std::uint32_t> blocks;
  /// Of the prompt, from the end: those that the decode engine does not have.
  std::uint32_t wanted = 0;
  /// How long the prompt may take to be computed.
  std::uint32_t wait_ms = 0;
};
std::string render(const kv_pull& pull);
parsed<kv_pull> parse_pull(std::string_view body);

}  // namespace infernex::simulator
