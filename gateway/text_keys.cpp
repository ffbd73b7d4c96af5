#include "gateway/text_keys.hpp"

#include <algorithm>
#include <string>

#include <xxhash.h>

namespace infernex::gateway {
namespace {

std::uint64_t never_zero(std::uint64_t hash) { return hash == 0 ? 1 : hash; }

/// Length before text, so that no two roots can spell the same bytes.
void append(std::string& bytes, std::string_view part) {
  bytes += std::to_string(part.size());
  bytes += ':';
  bytes += part;
}

std::uint64_t root_key(const text_root& root) {
  std::string bytes = root.kind == api::chat ? "infernex-text-chat-v1" : "infernex-text-completions-v1";
  append(bytes, root.model);
  append(bytes, root.adapter);
  append(bytes, root.salt);
  std::uint64_t rendering = 0;
  for (const auto& field : root.rendering)  // in whatever order they were sent
    rendering +=
        XXH3_64bits_withSeed(field.json.data(), field.json.size(), XXH3_64bits(field.name.data(), field.name.size()));
  append(bytes, std::to_string(rendering));
  return never_zero(XXH3_64bits(bytes.data(), bytes.size()));
}

}  // namespace

std::vector<std::uint64_t> text_keys(const text_root& root, std::string_view prompt, std::size_t limit) {
  const auto pieces = prompt.empty() ? 0 : std::min((prompt.size() - 1) / text_piece_bytes, limit);
  std::vector<std::uint64_t> keys;
  if (pieces == 0) return keys;
  keys.reserve(pieces);
  auto parent = root_key(root);
  for (std::size_t i = 0; i < pieces; ++i) {
    parent = never_zero(XXH3_64bits_withSeed(prompt.data() + i * text_piece_bytes, text_piece_bytes, parent));
    keys.push_back(parent);
  }
  return keys;
}

}  // namespace infernex::gateway
