// link: infernex_messages_core
#include <cstdlib>

#include "messages/subjects.hpp"

// Any text survives as a token of a subject, and any subject parses or is refused.
extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  using namespace infernex;
  const std::string_view text(reinterpret_cast<const char*>(data), size);
  const subjects names;

  const auto token = escape_token(text);
  if (token.find_first_of(".*> \t\r\n") != std::string::npos || token.empty()) std::abort();
  const auto back = unescape_token(token);
  if (!back || *back != text) std::abort();
  if (const auto other = unescape_token(text); other && escape_token(*other) != text) std::abort();

  const auto parsed = names.parse(names.kv_delta(text, "e0").name);
  if (!parsed || parsed->model != text || parsed->instance != "e0") std::abort();
  (void)names.parse(text);
  (void)names.parse(names.prefix() + "." + std::string(text));
  return 0;
}
