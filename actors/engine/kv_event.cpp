#include "actors/engine/kv_event.hpp"

namespace infernex::engine {

bool holds_every_token(std::string_view kind) {
  return kind.empty() || kind == "full_attention" || kind == "mla_attention" || kind == "sink_full_attention";
}

std::string_view name(drop_reason reason) {
  switch (reason) {
    case drop_reason::malformed_batch:
      return "malformed_batch";
    case drop_reason::malformed_event:
      return "malformed_event";
    case drop_reason::unknown_event:
      return "unknown_event";
    case drop_reason::unknown_medium:
      return "unknown_medium";
    case drop_reason::sparse_group:
      return "sparse_group";
    case drop_reason::block_size_mismatch:
      return "block_size_mismatch";
    case drop_reason::unknown_block:
      return "unknown_block";
    case drop_reason::parking_full:
      return "parking_full";
    case drop_reason::mirror_full:
      return "mirror_full";
    case drop_reason::other_rank:
      return "other_rank";
    case drop_reason::malformed_frames:
      return "malformed_frames";
    case drop_reason::count_:
      break;
  }
  return "unknown";
}

std::string_view name(wire_form form) {
  switch (form) {
    case wire_form::batch_array:
      return "batch_array";
    case wire_form::batch_map:
      return "batch_map";
    case wire_form::event_array:
      return "event_array";
    case wire_form::event_map:
      return "event_map";
    case wire_form::count_:
      break;
  }
  return "unknown";
}

}  // namespace infernex::engine
