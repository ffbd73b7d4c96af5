#include "actors/engine/kv_event_decoder.hpp"

#include <algorithm>
#include <cstring>
#include <limits>
#include <utility>

#include "actors/engine/kv_event_fields.hpp"
#include "actors/engine/msgpack_value.hpp"

namespace infernex::engine {

namespace {

using msgpack::elements;
using msgpack::value;

constexpr std::uint64_t max_u32 = std::numeric_limits<std::uint32_t>::max();
/// Room made before the events of a batch are read, whatever number it claims.
constexpr std::size_t max_reserved_events = 256;
/// As of a configured block size (actors/discovery). Groups that are not looked at may have larger ones.
constexpr std::uint32_t max_block_size = 65'536;

/// An event that was read, or why it is left out.
struct outcome {
  std::optional<kv_event> event;
  drop_reason reason = drop_reason::malformed_event;
  std::string problem;
};
outcome left_out(drop_reason reason, std::string problem) { return {std::nullopt, reason, std::move(problem)}; }

outcome read_stored(const event_fields& fields) {
  stored_blocks blocks;
  auto hashes = read_hashes(fields.get("block_hashes", 1));
  if (!hashes) return left_out(drop_reason::malformed_event, "BlockStored: block_hashes is no list of hashes");
  blocks.hashes = *std::move(hashes);

  if (const auto parent = fields.get("parent_block_hash", 2)) {
    blocks.parent = read_hash(*parent);
    if (!blocks.parent) return left_out(drop_reason::malformed_event, "BlockStored: parent_block_hash is no hash");
  }
  auto tokens = read_tokens(fields.get("token_ids", 3));
  if (!tokens) return left_out(drop_reason::malformed_event, "BlockStored: token_ids is no list of token ids");
  blocks.tokens = *std::move(tokens);

  const auto block_size = fields.get("block_size", 4);
  const auto size = block_size ? block_size->integer(max_u32) : 0;
  if (!size) return left_out(drop_reason::malformed_event, "BlockStored: block_size is no count of tokens");
  blocks.block_size = static_cast<std::uint32_t>(*size);

  const auto tier = read_tier(fields.get("medium", 6), fields.get("locality", event_fields::no_position));
  if (!tier) return left_out(drop_reason::unknown_medium, "BlockStored: unknown medium or locality");
  blocks.tier = *tier;
  blocks.adapter = read_adapter(fields.get("lora_name", 7), fields.get("lora_id", 5));
  if (const auto group = fields.get("group_idx", 9))
    if (const auto index = group->integer(max_u32)) blocks.group = static_cast<std::uint32_t>(*index);
  if (const auto kind = fields.get("kv_cache_spec_kind", 10)) blocks.attention_kind = kind->text().value_or("unknown");

  // Hashes and tokens of a sparse group need not match in number; nobody will look at them.
  if (holds_every_token(blocks.attention_kind) && !blocks.tokens.empty() &&
      blocks.tokens.size() != std::uint64_t{blocks.block_size} * blocks.hashes.size())
    return left_out(drop_reason::malformed_event, "BlockStored: " + std::to_string(blocks.hashes.size()) +
                                                      " blocks of " + std::to_string(blocks.block_size) +
                                                      " tokens, but " + std::to_string(blocks.tokens.size()) +
                                                      " token ids");
  if (holds_every_token(blocks.attention_kind) && blocks.block_size > max_block_size)
    return left_out(drop_reason::malformed_event,
                    "BlockStored: blocks of " + std::to_string(blocks.block_size) + " tokens");
  read_extra_keys(fields, blocks);
  return {kv_event(std::move(blocks)), {}, {}};
}

outcome read_removed(const event_fields& fields) {
  removed_blocks blocks;
  auto hashes = read_hashes(fields.get("block_hashes", 1));
  if (!hashes) return left_out(drop_reason::malformed_event, "BlockRemoved: block_hashes is no list of hashes");
  blocks.hashes = *std::move(hashes);
  const auto tier = read_tier(fields.get("medium", 2), fields.get("locality", event_fields::no_position));
  if (!tier) return left_out(drop_reason::unknown_medium, "BlockRemoved: unknown medium or locality");
  blocks.tier = *tier;
  if (const auto group = fields.get("group_idx", 3))
    if (const auto index = group->integer(max_u32)) blocks.group = static_cast<std::uint32_t>(*index);
  return {kv_event(std::move(blocks)), {}, {}};
}

outcome read_event(const event_fields& fields) {
  const auto tag = fields.get("type", 0);
  const auto kind = tag ? tag->text() : std::nullopt;
  if (!kind) return left_out(drop_reason::malformed_event, "an event without a type");
  if (*kind == "BlockStored") return read_stored(fields);
  if (*kind == "BlockRemoved") return read_removed(fields);
  if (*kind == "AllBlocksCleared") return {kv_event(all_cleared{}), {}, {}};
  return left_out(drop_reason::unknown_event, "unknown event type");
}

std::optional<publisher_id> read_publisher_id(value field) {
  const auto bytes = field.bytes();
  publisher_id id{};
  if (!bytes || bytes->size() != id.size()) return std::nullopt;
  std::memcpy(id.data(), bytes->data(), id.size());
  return id;
}

}  // namespace

std::optional<publisher_id> find_publisher(std::span<const std::uint8_t> payload) {
  // An array of three is what engines send today: it has no room for one.
  if (payload.empty() || payload.size() > max_batch_bytes || (payload[0] >= 0x90 && payload[0] <= 0x93))
    return std::nullopt;
  const auto root = msgpack::check(payload);
  if (!root) return std::nullopt;
  const auto id = event_fields(*root).get("publisher_id", 3);
  return id ? read_publisher_id(*id) : std::nullopt;
}

result<kv_event_batch> decode_kv_events(std::span<const std::uint8_t> payload) {
  if (payload.size() > max_batch_bytes)
    return error{errc::too_large, "a KV event batch of " + std::to_string(payload.size()) + " bytes"};
  const auto root = msgpack::check(payload);
  if (!root) return root.failure();
  const event_fields envelope(*root);
  const auto events = envelope.get("events", 1);
  if (!events || !events->is_array()) return error{errc::malformed_input, "a KV event batch without a list of events"};

  kv_event_batch batch;
  if (const auto time = envelope.get("ts", 0)) batch.published_at = time->number().value_or(0);
  auto rank = envelope.get("data_parallel_rank", 2);
  if (!rank) rank = envelope.get("attn_dp_rank", 2);
  if (rank)
    if (const auto number = rank->bits()) batch.data_parallel_rank = static_cast<std::int64_t>(*number);

  if (const auto id = envelope.get("publisher_id", 3)) batch.publisher = read_publisher_id(*id);
  ++batch.forms[envelope.named() ? wire_form::batch_map : wire_form::batch_array];

  std::size_t index = 0;
  elements each(*events);
  batch.events.reserve(std::min<std::size_t>(each.size(), max_reserved_events));
  for (; !each.done(); ++index) {
    const auto event = each.next();
    outcome read = left_out(drop_reason::malformed_event, "an event is neither an array nor a map");
    if (event.is_array() || event.is_map()) {
      const event_fields fields(event);
      each.passed(fields.end());
      ++batch.forms[fields.named() ? wire_form::event_map : wire_form::event_array];
      read = read_event(fields);
    }
    if (read.event) {
      batch.events.push_back(*std::move(read.event));
      continue;
    }
    ++batch.dropped[read.reason];
    if (batch.first_problem.empty()) batch.first_problem = "event " + std::to_string(index) + ": " + read.problem;
  }
  return batch;
}

}  // namespace infernex::engine
