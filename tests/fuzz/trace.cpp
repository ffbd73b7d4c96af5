// link: infernex_simulator_core
#include <cstdint>
#include <cstdlib>
#include <sstream>
#include <string>

#include "actors/simulator/replay_trace_file.hpp"

using namespace infernex::simulator;

namespace {

constexpr trace_limits limits{
    .max_requests = 1'000, .max_blocks = 10'000, .max_line_bytes = 1'000, .max_problems = 5, .max_tokens = 1 << 20};

std::string written(const trace& requests) {
  auto text = trace_header(requests.block_tokens(), "");
  for (std::size_t i = 0; i < requests.size(); ++i) text += trace_line(requests[i], std::nullopt);
  return text;
}

}  // namespace

// Any bytes as a trace: never a crash, never over a limit; and what was read, written in our own form, is read back
// whole.
extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  std::istringstream in(std::string(reinterpret_cast<const char*>(data), size));
  const auto read = read_trace(in, "fuzzed", limits);
  if (!read) return 0;
  if (read->requests.empty() || read->requests.size() > limits.max_requests ||
      read->requests.total_blocks() > limits.max_blocks || read->problems.size() > limits.max_problems)
    std::abort();
  // Lines of ours may be longer than the ones they came from.
  auto roomy = limits;
  roomy.max_line_bytes = 1 << 20;
  const auto once = written(read->requests);
  std::istringstream again(once);
  const auto back = read_trace(again, "written", roomy);
  if (!back || back->bad_lines != 0 || written(back->requests) != once) std::abort();
  return 0;
}
