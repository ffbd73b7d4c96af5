#pragma once

#include <optional>
#include <string_view>
#include <utility>
#include <vector>

#include "actors/engine/kv_event.hpp"
#include "actors/engine/msgpack_value.hpp"

namespace infernex::engine {

/// The fields of an event (or of the envelope), whichever of its two encodings it came in: by position in
/// an array, by name in a map.
class event_fields {
 public:
  explicit event_fields(msgpack::value event);
  /// Absent and nil are the same: engines use either for "none".
  std::optional<msgpack::value> get(std::string_view name, std::size_t position) const;

 private:
  bool named_ = false;
  std::vector<std::pair<std::string_view, msgpack::value>> by_name_;
  std::vector<msgpack::value> by_position_;
};

/// Readers of single fields. Nothing: the field is there but of the wrong kind (or absent, where required).
std::optional<std::uint64_t> read_hash(msgpack::value field);
std::optional<std::vector<std::uint64_t>> read_hashes(std::optional<msgpack::value> field);
/// Absent is an empty list.
std::optional<std::vector<std::uint32_t>> read_tokens(std::optional<msgpack::value> field);
/// Absent is the GPU: events were about nothing else before they named a medium.
std::optional<block_tier> read_tier(std::optional<msgpack::value> field);
/// The adapter's name; for engines that only give its number, `#<number>`; empty for the base model.
std::string read_adapter(std::optional<msgpack::value> name, std::optional<msgpack::value> number);
/// Cache salt and per-block extras. `blocks` must have its hashes, parent and adapter already.
void read_extra_keys(const event_fields& fields, stored_blocks& blocks);

}  // namespace infernex::engine
