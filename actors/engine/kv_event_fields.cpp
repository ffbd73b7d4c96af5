#include "actors/engine/kv_event_fields.hpp"

#include <algorithm>
#include <limits>

namespace infernex::engine {

namespace {

using msgpack::elements;
using msgpack::value;

bool same_word(std::string_view word, std::string_view upper) {
  return std::ranges::equal(word, upper, {},
                            [](char c) { return c >= 'a' && c <= 'z' ? static_cast<char>(c - 32) : c; });
}

std::optional<fb::KvTier> tier_of(std::string_view medium) {
  for (const auto* name : {"GPU", "NPU"})
    if (same_word(medium, name)) return fb::KvTier::Device;
  for (const auto* name : {"CPU", "CPU_PINNED"})
    if (same_word(medium, name)) return fb::KvTier::Host;
  for (const auto* name : {"STORAGE", "DISK", "EXTERNAL"})
    if (same_word(medium, name)) return fb::KvTier::Disk;
  return std::nullopt;
}

void append_extra(std::string& extra, char kind, std::string_view content) {
  const auto size = static_cast<std::uint32_t>(content.size());
  extra += kind;
  for (int shift = 0; shift < 32; shift += 8) extra += static_cast<char>(size >> shift);
  extra += content;
}

std::optional<value> member_value(value map, std::string_view key) {
  for (elements each(map); !each.done();) {
    const auto name = each.next().text();
    const auto content = each.next();
    if (name == key) return content;
  }
  return std::nullopt;
}

std::string_view member(value map, std::string_view key) {
  const auto found = member_value(map, key);
  return found ? found->bytes().value_or(std::string_view{}) : std::string_view{};
}

/// One entry of a block's extra keys that is not a plain string: `[image, offset]`, a digest of prompt
/// embeddings, or a map that names its kind. The offset is left out: where an image lies follows from the
/// tokens around it.
void read_structured_entry(value entry, bool first_of_prompt, std::string& salt, std::string& extra) {
  if (entry.is_map()) {
    const auto kind = member(entry, "type");
    if (kind == "lora") return;
    if (kind == "cache_salt") {
      if (first_of_prompt) salt = member(entry, "salt");
      return;
    }
    if (kind == "mm") return append_extra(extra, 'i', member(entry, "hash"));
    if (kind == "prompt_embeds") return append_extra(extra, 'e', member(entry, "hash"));
  }
  if (entry.is_array()) {
    elements parts(entry);
    if (!parts.done())
      if (const auto image = parts.next().bytes()) return append_extra(extra, 'i', *image);
  }
  if (const auto digest = entry.bytes()) return append_extra(extra, 'e', *digest);
  // Whatever it is, blocks that differ in it must not share a key.
  append_extra(extra, '?', entry.encoded());
}

void read_block_entries(value entries, bool first_of_prompt, const std::string& adapter, std::string& salt,
                        std::string& extra) {
  std::vector<std::string_view> strings;
  for (elements each(entries); !each.done();) {
    auto entry = each.next();
    if (entry.is_map() && member(entry, "type") == "legacy") entry = member_value(entry, "value").value_or(entry);
    if (const auto text = entry.text()) {
      // Engines repeat the adapter's name here; it is in the root of the chain already.
      if (*text != adapter) strings.push_back(*text);
    } else if (!entry.is_nil()) {
      read_structured_entry(entry, first_of_prompt, salt, extra);
    }
  }
  // A bare string is the cache salt, which comes last and in the first block only, or an image.
  if (first_of_prompt && !strings.empty()) {
    salt = strings.back();
    strings.pop_back();
  }
  for (const auto image : strings) append_extra(extra, 'i', image);
}

}  // namespace

event_fields::event_fields(value event) : named_(event.is_map()) {
  elements each(event);
  while (!each.done() && count_ < max_fields) {
    const auto item = each.next();
    if (!named_) {
      fields_[count_++] = {{}, item.position()};
    } else if (const auto key = item.text()) {
      fields_[count_++] = {*key, each.next().position()};
    } else {
      each.next();
    }
  }
  end_ = each.end();
}

std::optional<value> event_fields::get(std::string_view name, std::size_t position) const {
  if (named_) {
    for (position = 0; position < count_ && fields_[position].name != name;) ++position;
  }
  if (position >= count_) return std::nullopt;
  const value found(fields_[position].at);
  return found.is_nil() ? std::nullopt : std::optional(found);
}

std::optional<std::uint64_t> read_hash(value field) {
  if (const auto number = field.bits()) return number;
  const auto digest = field.bytes();
  if (!digest || digest->size() < 8) return std::nullopt;
  std::uint64_t hash = 0;
  for (const char byte : digest->substr(digest->size() - 8)) hash = hash << 8 | static_cast<unsigned char>(byte);
  return hash;
}

std::optional<std::vector<std::uint64_t>> read_hashes(std::optional<value> field) {
  if (!field || !field->is_array()) return std::nullopt;
  elements each(*field);
  std::vector<std::uint64_t> hashes;
  hashes.reserve(each.size());
  while (!each.done()) {
    const auto hash = read_hash(each.next());
    if (!hash) return std::nullopt;
    hashes.push_back(*hash);
  }
  return hashes;
}

std::optional<std::vector<std::uint32_t>> read_tokens(std::optional<value> field) {
  std::vector<std::uint32_t> tokens;
  if (!field || msgpack::read_numbers(*field, tokens)) return tokens;
  if (!field->is_array()) return std::nullopt;
  tokens.clear();
  for (elements each(*field); !each.done();) {
    auto item = each.next();
    if (elements pair(item); item.is_array() && pair.size() == 2) item = pair.next();
    const auto token = item.integer(std::numeric_limits<std::uint32_t>::max());
    if (!token) return std::nullopt;
    tokens.push_back(static_cast<std::uint32_t>(*token));
  }
  return tokens;
}

std::optional<fb::KvTier> read_tier(std::optional<value> medium, std::optional<value> locality) {
  auto tier = std::optional(fb::KvTier::Device);
  if (medium) tier = tier_of(medium->text().value_or(std::string_view{}));
  if (!locality) return tier;
  const auto where = locality->text().value_or(std::string_view{});
  if (same_word(where, "LOCAL")) return tier;
  return tier && same_word(where, "REMOTE") ? std::optional(fb::KvTier::Disk) : std::nullopt;
}

std::string read_adapter(std::optional<value> name, std::optional<value> number) {
  if (name)
    if (const auto text = name->text()) return std::string(*text);
  if (number)
    if (const auto id = number->bits()) return "#" + std::to_string(*id);
  return {};
}

void read_extra_keys(const event_fields& fields, stored_blocks& blocks) {
  const bool starts_prompt = !blocks.parent;
  const auto keys = fields.get("extra_keys", 8);
  if (keys && keys->is_array()) {
    std::size_t block = 0;
    for (elements each(*keys); !each.done() && block < blocks.hashes.size(); ++block) {
      const auto entries = each.next();
      if (!entries.is_array()) continue;
      std::string extra;
      read_block_entries(entries, starts_prompt && block == 0, blocks.adapter, blocks.salt, extra);
      if (extra.empty()) continue;
      blocks.extras.resize(blocks.hashes.size());
      blocks.extras[block] = std::move(extra);
    }
  }
  // SGLang: a metadata map in the place of the adapter's name or of extra_keys, or a field of its own.
  if (!starts_prompt) return;
  for (const auto place : {fields.get("lora_name", 7), keys})
    if (place && place->is_map()) blocks.salt = member(*place, "cache_salt");
  if (const auto salt = fields.get("cache_salt", event_fields::no_position))
    blocks.salt = salt->text().value_or(std::string_view{});
}

}  // namespace infernex::engine
