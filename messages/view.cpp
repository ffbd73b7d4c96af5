#include "messages/view.hpp"

#include <cstring>
#include <new>

namespace infernex {

namespace {
// Deep enough for every schema of ours; a bound, so that a hostile buffer cannot make verification slow.
constexpr flatbuffers::uoffset_t max_depth = 16;
constexpr flatbuffers::uoffset_t max_tables = 200'000;
constexpr std::align_val_t alignment{16};
}  // namespace

chunk chunk::copy_of(std::span<const std::uint8_t> bytes, std::shared_ptr<const void> also) {
  auto* copy = static_cast<std::uint8_t*>(::operator new(bytes.size() + 1, alignment));
  if (!bytes.empty()) std::memcpy(copy, bytes.data(), bytes.size());
  std::shared_ptr<const void> owner(copy, [also = std::move(also)](const std::uint8_t* p) {
    ::operator delete(const_cast<std::uint8_t*>(p), alignment);
  });
  return {{copy, bytes.size()}, std::move(owner)};
}

error verify_message(std::span<const std::uint8_t> bytes, const root_table& expected) {
  const auto size = std::to_string(bytes.size()) + " bytes";
  if (bytes.size() > max_message_bytes) return {errc::too_large, size};
  if (bytes.size() < 8) return {errc::malformed_message, size + ", too short for a " + std::string(expected.root)};
  if (std::memcmp(bytes.data() + 4, expected.identifier.data(), 4) != 0) {
    const auto* other = find_root_table(bytes);
    return {errc::wrong_message_type, "expected " + std::string(expected.root) + ", got " +
                                          (other ? std::string(other->root) : std::string("an unknown identifier"))};
  }
  flatbuffers::Verifier verifier(bytes.data(), bytes.size(), max_depth, max_tables);
  if (!expected.verify(verifier)) return {errc::malformed_message, std::string(expected.root) + " of " + size};
  return {};
}

}  // namespace infernex
