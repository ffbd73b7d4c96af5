#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "actors/proxy/request_body.hpp"
#include "messages/registry.hpp"

namespace infernex::proxy {

/// An engine as one leg of a request.
struct engine_ref {
  std::string instance;
  /// Base URL, and its `host:port`.
  std::string url;
  std::string address;
  /// The rank it is, of an engine with several behind one URL.
  std::optional<std::uint32_t> rank;
  /// TCP port of its bootstrap endpoint, on the host of its URL.
  std::optional<std::uint16_t> bootstrap_port;
  /// Changes when the engine is started anew, as far as it announces that.
  std::string engine_id;
  /// When it was started, as its agent measured that.
  std::optional<std::uint64_t> epoch = std::nullopt;

  /// What is known of an engine is of one life of it.
  std::string life() const { return epoch ? engine_id + '@' + std::to_string(*epoch) : engine_id; }
  std::string host() const { return address.substr(0, address.rfind(':')); }
  friend bool operator==(const engine_ref&, const engine_ref&) = default;
};

/// Without a prefill engine: decode does both.
struct engine_pair {
  std::optional<engine_ref> prefill;
  engine_ref decode;
  friend bool operator==(const engine_pair&, const engine_pair&) = default;
};

/// What one attempt at a pair is about. Lives as long as the attempt.
struct attempt {
  request_facts facts;
  /// The client's body, or a continuation of it.
  std::string body;
  engine_pair pair;
  /// Goes to both legs as X-Request-Id; letters and digits only.
  std::string id;
  /// 63 random bits.
  std::uint64_t random = 0;
  /// URL at which a decode engine asks for its prefill.
  std::string metaserver;
  /// What the prefill engine's bootstrap endpoint answered lately; empty: not known.
  std::string bootstrap;
};

struct outgoing_leg {
  std::string body;
  /// Besides X-Request-Id.
  std::vector<std::pair<std::string, std::string>> headers;
};

/// What is to be done next.
struct step {
  std::optional<outgoing_leg> prefill;
  std::optional<outgoing_leg> decode;
  /// Ask the prefill engine's bootstrap endpoint (GET /query).
  bool query_bootstrap = false;
  /// The prefill engine has answered something that is of no use; one line for people.
  std::string problem;
};

/// How a prefill engine's KV blocks get to a decode engine, for one attempt at one pair: one file a protocol.
/// Formats: the engines' own connectors (docs/pd.md says which). Pure; a deadline or a failure of a leg ends the
/// attempt from outside.
class protocol {
 public:
  virtual ~protocol() = default;
  virtual step begin(const attempt& at) = 0;
  /// The prefill engine has answered with 200.
  virtual step on_prefill(const attempt&, std::string_view /*answer*/) { return {}; }
  /// The answer of its bootstrap endpoint.
  virtual step on_bootstrap(const attempt&, std::string_view /*answer*/) { return {}; }
  /// The decode engine asks for the prefill of `request_id` (one of several, for a list of prompts).
  virtual step on_metaserver(const attempt&, std::string_view /*request_id*/, std::string_view /*params*/) {
    return {};
  }
  /// Whether what decode engines ask is about this attempt's request.
  virtual bool asks_metaserver() const { return false; }
  /// Whether its decode engines compute prompts too, when nobody else can.
  virtual bool decode_may_prefill() const { return true; }
  /// For a decode engine, to be sent and broken off: lets go of blocks that the prefill engine holds for this attempt
  /// and nobody will fetch. Nothing: there are none, or the protocol has no way.
  virtual std::optional<outgoing_leg> release(const attempt&) const { return std::nullopt; }
};

/// Null for KvProtocol::None.
std::unique_ptr<protocol> make_protocol(fb::KvProtocol kind);
std::string_view name_of(fb::KvProtocol kind);

std::unique_ptr<protocol> make_nixl();
std::unique_ptr<protocol> make_mooncake();
std::unique_ptr<protocol> make_ascend();
std::unique_ptr<protocol> make_ascend_layerwise();
std::unique_ptr<protocol> make_sglang();

}  // namespace infernex::proxy
