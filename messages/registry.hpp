#pragma once

#include <array>
#include <span>
#include <string_view>

#include "messages/generated/announce_request_generated.h"
#include "messages/generated/engine_announce_generated.h"
#include "messages/generated/engine_load_generated.h"
#include "messages/generated/hw_event_generated.h"
#include "messages/generated/hw_inventory_generated.h"
#include "messages/generated/hw_sample_generated.h"
#include "messages/generated/kv_delta_generated.h"
#include "messages/generated/kv_match_query_generated.h"
#include "messages/generated/kv_match_reply_generated.h"
#include "messages/generated/kv_snapshot_chunk_generated.h"
#include "messages/generated/kv_snapshot_request_generated.h"
#include "messages/generated/pd_control_generated.h"
#include "messages/generated/pd_control_reply_generated.h"
#include "messages/generated/pd_state_generated.h"
#include "messages/generated/request_life_generated.h"
#include "messages/generated/route_decision_generated.h"
#include "messages/generated/route_query_generated.h"
#include "messages/generated/router_announce_generated.h"
#include "messages/generated/verdict_generated.h"

namespace infernex {

namespace fb = infernex::messages;

/// What the code must know of a root table: its name, its 4-character file identifier, how it is verified.
template <class T>
struct message_traits;

#define INFERNEX_ROOT_TABLE(Table)                                                        \
  template <>                                                                             \
  struct message_traits<fb::Table> {                                                      \
    static constexpr std::string_view root = #Table;                                      \
    static const char* identifier() { return fb::Table##Identifier(); }                   \
    static bool verify(flatbuffers::Verifier& v) { return fb::Verify##Table##Buffer(v); } \
  };
// clang-format off
#define INFERNEX_EVERY_ROOT_TABLE(X)                                                                             \
  X(AnnounceRequest) X(EngineAnnounce) X(EngineLoad) X(KvDelta) X(KvSnapshotRequest) X(KvSnapshotChunk)          \
  X(KvMatchQuery) X(KvMatchReply) X(RouteQuery) X(RouteDecision) X(RequestLife) X(RouterAnnounce)     \
  X(PdState) X(PdControl) X(PdControlReply) X(HwSample) X(HwEvent) X(HwInventory) X(Verdict)
// clang-format on
INFERNEX_EVERY_ROOT_TABLE(INFERNEX_ROOT_TABLE)
#undef INFERNEX_ROOT_TABLE

/// One row a root table, for code that meets messages of any type.
struct root_table {
  std::string_view root;
  std::string_view identifier;
  bool (*verify)(flatbuffers::Verifier&);
  /// The schema in binary form, for rendering as JSON.
  std::span<const std::uint8_t> schema;
};

std::span<const root_table> every_root_table();

/// The row whose file identifier `bytes` carries, or null.
const root_table* find_root_table(std::span<const std::uint8_t> bytes);

}  // namespace infernex
