#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "messages/registry.hpp"
#include "messages/result.hpp"

namespace infernex {

/// One subject token from any text: every byte outside [A-Za-z0-9-] becomes _HH (hex), so that the
/// mapping is injective and needs no table. Empty text becomes `_`.
std::string escape_token(std::string_view text);

/// The inverse. Errors: malformed_subject.
result<std::string> unescape_token(std::string_view token);

/// A subject with the message type that travels on it.
template <class T>
struct subject {
  std::string name;
};

/// The variable tokens of a subject, as text.
struct subject_names {
  /// Of the hardware half: the node.
  std::string model;
  /// Of a verdict: the device.
  std::string instance;
};

/// Every subject name of InferNex, and nothing else makes one. The wildcard forms (`any_…`) are for
/// subscribers. Prefix: `ix.v1` unless configured, so that several installations can share one NATS.
class subjects {
 public:
  explicit subjects(std::string prefix = "ix.v1") : prefix_(std::move(prefix)) {}

  const std::string& prefix() const { return prefix_; }

  /// agent -> all, every 2 s and on change.
  subject<fb::EngineAnnounce> announce(std::string_view model, std::string_view instance) const;
  subject<fb::EngineAnnounce> any_announce() const;
  /// gateway, router, indexer -> agents: announce now.
  subject<fb::AnnounceRequest> announce_request() const;
  /// agent -> routers, every scrape.
  subject<fb::EngineLoad> load(std::string_view model, std::string_view instance) const;
  subject<fb::EngineLoad> any_load() const;
  /// agent -> indexers.
  subject<fb::KvDelta> kv_delta(std::string_view model, std::string_view instance) const;
  subject<fb::KvDelta> any_kv_delta() const;
  /// indexer -> agent, request; the agent answers KvSnapshotChunk messages to the reply subject.
  subject<fb::KvSnapshotRequest> kv_snapshot(std::string_view model, std::string_view instance) const;
  subject<fb::KvSnapshotRequest> any_kv_snapshot() const;
  /// anyone -> indexer, request/reply, queue group `indexer`.
  subject<fb::KvMatchQuery> kv_match(std::string_view model) const;
  subject<fb::KvMatchQuery> any_kv_match() const;
  /// gateway, anyone -> router, request/reply, queue group `router`.
  subject<fb::RouteQuery> route_query(std::string_view model) const;
  subject<fb::RouteQuery> any_route_query() const;
  /// The same, for one router; it subscribes for all models. Router names are in RouterAnnounce.
  subject<fb::RouteQuery> route_query_of(std::string_view model, std::string_view router) const;
  subject<fb::RouteQuery> any_route_query_of(std::string_view router) const;
  /// Those of every router, for who only watches.
  subject<fb::RouteQuery> any_route_query_of_any() const;
  /// router -> gateways, every second.
  subject<fb::RouterAnnounce> router_announce(std::string_view router) const;
  subject<fb::RouterAnnounce> any_router_announce() const;
  /// router -> watchers.
  subject<fb::RouteDecision> route_decision(std::string_view model) const;
  /// gateway -> routers.
  subject<fb::RequestLife> request_life(std::string_view model) const;
  subject<fb::RequestLife> any_request_life() const;

  /// PD-group proxy -> routers, operators.
  subject<fb::PdState> pd_state(std::string_view group) const;
  subject<fb::PdState> any_pd_state() const;
  /// operator -> PD-group proxy, request/reply.
  subject<fb::PdControl> pd_control(std::string_view group) const;

  /// monitor -> all, every second; its events and inventory.
  subject<fb::HwSample> hw_sample(std::string_view node) const;
  subject<fb::HwSample> any_hw_sample() const;
  subject<fb::HwEvent> hw_event(std::string_view node) const;
  subject<fb::HwEvent> any_hw_event() const;
  subject<fb::HwInventory> hw_inventory(std::string_view node) const;
  subject<fb::HwInventory> any_hw_inventory() const;
  /// diagnosis -> routers, operators. No device: of the node as a whole, whose token is `node`.
  subject<fb::Verdict> verdict(std::string_view node, std::optional<std::uint32_t> device) const;
  subject<fb::Verdict> any_verdict() const;

  /// Model and instance of a concrete subject of this prefix (instance empty where the subject has none).
  /// Errors: malformed_subject.
  result<subject_names> parse(std::string_view name) const;

 private:
  std::string prefix_;
};

/// The `Content-Type` header of every message of ours.
template <class T>
std::string content_type() {
  return "application/x-flatbuffers; schema=" + std::string(message_traits<T>::root);
}

}  // namespace infernex
