// link: infernex_runtime_core
#include "actors/runtime/config.hpp"

#include <cstdlib>

namespace {

using namespace infernex::config;
using std::chrono::milliseconds;

struct settings {
  std::string text;
  bool flag = false;
  double share = 0.5;
  std::uint16_t port = 7;
  std::uint64_t bytes = 3;
  milliseconds wait{5};
  std::vector<std::string> texts;
  std::optional<std::uint32_t> limit;
};

void read(section root, settings& out) {
  root.require("name").read("name", out.text).read("flag", out.flag).read("share", out.share, 0, 1);
  root.read("texts", out.texts);
  auto gateway = root.below("gateway");
  gateway.read("port", out.port, 1, 65535).read_bytes("bytes", out.bytes, 1, 1000).read("limit", out.limit, 1, 9);
  gateway.read("wait", out.wait, milliseconds(1), milliseconds(1000));
  for (auto& engine : root.list("engines")) engine.read("url", out.text).complain("url", "as it is");
}

bool in_range(const settings& s) {
  return s.share >= 0 && s.share <= 1 && s.port >= 1 && s.bytes >= 1 && s.bytes <= 1000 && s.wait >= milliseconds(1) &&
         s.wait <= milliseconds(1000) && (!s.limit || (*s.limit >= 1 && *s.limit <= 9));
}

}  // namespace

// Any text as a configuration: never a crash, no setting out of its range, every problem one line with a place.
extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  auto file = document::parse({reinterpret_cast<const char*>(data), size}, "fuzz.yaml");
  settings out;
  read(file.root(), out);
  if (!in_range(out)) std::abort();
  for (const auto& p : file.problems())
    if (p.line < 1 || p.column < 1 || render(p).find('\n') != std::string::npos) std::abort();
  return 0;
}
