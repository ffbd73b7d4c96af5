// link: infernex_messages_core
#include "messages/decode.hpp"

#include <algorithm>
#include <cstdlib>
#include <vector>

#include "messages/registry.hpp"

// Any bytes as a message, as they come and under the identifier of each of ours: never a crash, and what is
// accepted is one line.
extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  using namespace infernex;
  const auto decode = [](std::span<const std::uint8_t> bytes) {
    if (const auto json = decode_to_json(bytes))
      if (json->empty() || json->find('\n') != std::string::npos) std::abort();
  };
  std::vector<std::uint8_t> message(data, data + size);
  decode(message);
  if (size < 8) return 0;
  for (const auto& table : every_root_table()) {
    std::copy(table.identifier.begin(), table.identifier.end(), message.begin() + 4);
    decode(message);
  }
  return 0;
}
