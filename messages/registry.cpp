#include "messages/registry.hpp"

#include <cstring>

#include "messages/generated/announce_request_bfbs_generated.h"
#include "messages/generated/engine_announce_bfbs_generated.h"
#include "messages/generated/engine_load_bfbs_generated.h"
#include "messages/generated/hw_event_bfbs_generated.h"
#include "messages/generated/hw_inventory_bfbs_generated.h"
#include "messages/generated/hw_sample_bfbs_generated.h"
#include "messages/generated/kv_delta_bfbs_generated.h"
#include "messages/generated/kv_match_query_bfbs_generated.h"
#include "messages/generated/kv_match_reply_bfbs_generated.h"
#include "messages/generated/kv_snapshot_chunk_bfbs_generated.h"
#include "messages/generated/kv_snapshot_request_bfbs_generated.h"
#include "messages/generated/pd_control_bfbs_generated.h"
#include "messages/generated/pd_control_reply_bfbs_generated.h"
#include "messages/generated/pd_state_bfbs_generated.h"
#include "messages/generated/request_life_bfbs_generated.h"
#include "messages/generated/route_decision_bfbs_generated.h"
#include "messages/generated/route_query_bfbs_generated.h"
#include "messages/generated/router_announce_bfbs_generated.h"
#include "messages/generated/verdict_bfbs_generated.h"

namespace infernex {

std::span<const root_table> every_root_table() {
#define INFERNEX_ROW(Table)                                \
  root_table{#Table,                                       \
             std::string_view(fb::Table##Identifier(), 4), \
             &message_traits<fb::Table>::verify,           \
             {fb::Table##BinarySchema::data(), fb::Table##BinarySchema::size()}},
  static const std::array rows{INFERNEX_EVERY_ROOT_TABLE(INFERNEX_ROW)};
#undef INFERNEX_ROW
  return rows;
}

const root_table* find_root_table(std::span<const std::uint8_t> bytes) {
  // Root offset (4 bytes), then the identifier.
  if (bytes.size() < 8) return nullptr;
  for (const auto& row : every_root_table())
    if (std::memcmp(bytes.data() + 4, row.identifier.data(), 4) == 0) return &row;
  return nullptr;
}

}  // namespace infernex
