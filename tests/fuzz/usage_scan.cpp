// link: infernex_gateway_core
#include "gateway/usage_scan.hpp"

#include <algorithm>
#include <cstdlib>

#include "tests/fuzz/byte_reader.hpp"

namespace {

using namespace infernex::gateway;

bool same(const usage& a, const usage& b) {
  return a.prompt_tokens == b.prompt_tokens && a.completion_tokens == b.completion_tokens &&
         a.cached_tokens == b.cached_tokens;
}

}  // namespace

// Any bytes as an engine's stream, cut anywhere: never a crash, every byte passes once and in order, and what is
// seen does not depend on the cuts.
extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  infernex::test::byte_reader bytes(data, size);
  const std::size_t step = 1 + bytes.below(64);
  const std::size_t bound = bytes.below(4) == 0 ? bytes.byte() : 1 << 20;
  const auto left = bytes.rest();
  const std::string_view stream(reinterpret_cast<const char*>(left.data()), left.size());

  stream_scan cut(bound);
  std::string passed;
  for (std::size_t at = 0; at < stream.size(); at += step) passed += cut.feed(stream.substr(at, step));
  passed += cut.rest();
  if (passed != stream) std::abort();

  stream_scan whole;
  whole.feed(stream);
  if (bound == 1 << 20 && (whole.done() != cut.done() || whole.first_token() != cut.first_token() ||
                           !same(whole.last_usage(), cut.last_usage())))
    std::abort();
  find_usage(stream);
  return 0;
}
