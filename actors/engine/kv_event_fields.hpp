#pragma once

#include <array>
#include <optional>
#include <string_view>
#include <vector>

#include "actors/engine/kv_event.hpp"
#include "actors/engine/msgpack_value.hpp"

namespace infernex::engine {

/// The fields of an event (or of the envelope), whichever of its two encodings it came in: by position in
/// an array, by name in a map. No allocation; fields beyond the first `max_fields` are not looked at.
class event_fields {
 public:
  explicit event_fields(msgpack::value event);
  /// Absent and nil are the same: engines use either for "none".
  std::optional<msgpack::value> get(std::string_view name, std::size_t position) const;
  /// For fields that exist by name only.
  static constexpr auto no_position = static_cast<std::size_t>(-1);

  bool named() const { return named_; }
  /// Where the event ends.
  const char* end() const { return end_; }

 private:
  /// vLLM's longest event has 16.
  static constexpr std::size_t max_fields = 32;
  struct field {
    std::string_view name;
    const char* at;
  };
  bool named_ = false;
  std::size_t count_ = 0;
  const char* end_ = nullptr;
  std::array<field, max_fields> fields_;  // the first count_
};

/// Readers of single fields. Nothing: the field is there but of the wrong kind (or absent, where required).
std::optional<std::uint64_t> read_hash(msgpack::value field);
std::optional<std::vector<std::uint64_t>> read_hashes(std::optional<msgpack::value> field);
/// Absent is an empty list. A pair counts as its first token: SGLang names a block by pairs of neighbours under
/// speculative decoding.
std::optional<std::vector<std::uint32_t>> read_tokens(std::optional<msgpack::value> field);
/// Media of vLLM and SGLang, whatever their case. Absent is the GPU: events were about nothing else before they
/// named a medium. What is kept elsewhere (medium EXTERNAL, or locality REMOTE whatever the medium) counts as
/// disk: it has to be fetched, and a store and its removal must name the same tier.
std::optional<fb::KvTier> read_tier(std::optional<msgpack::value> medium, std::optional<msgpack::value> locality);
/// The adapter's name; for engines that only give its number, `#<number>`; empty for the base model.
std::string read_adapter(std::optional<msgpack::value> name, std::optional<msgpack::value> number);
/// Cache salt and per-block extras. `blocks` must have its hashes, parent and adapter already.
void read_extra_keys(const event_fields& fields, stored_blocks& blocks);

}  // namespace infernex::engine
