#pragma once

#include <iosfwd>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "actors/simulator/replay_histogram.hpp"
#include "actors/simulator/replay_trace.hpp"
#include "messages/result.hpp"

namespace infernex::simulator {

struct trace_limits {
  std::size_t max_requests = 5'000'000;
  /// Of all requests together: 8 bytes each.
  std::size_t max_blocks = 200'000'000;
  std::size_t max_line_bytes = 16 << 20;
  std::size_t max_problems = 20;
  /// Of one prompt or answer.
  std::uint32_t max_tokens = 1 << 24;
};

struct loaded_trace {
  trace requests;
  /// What was asked for; empty where the file does not say.
  std::string model;
  /// TTFT as it was when the trace was recorded; empty where the file has none.
  replay_histogram observed_ttft;
  /// A bad line loses only itself: how many there were, and what was wrong with the first ones (`file:line: …`).
  std::uint64_t bad_lines = 0;
  std::vector<std::string> problems;
};

/// Reads a trace line by line, in either form of docs/replay.md: our own, which starts with a header, or Mooncake's
/// (https://github.com/kvcache-ai/Mooncake, FAST25-release/traces).
class trace_reader {
 public:
  /// `name`: the file, for messages.
  explicit trace_reader(std::string name, trace_limits limits = {});
  ~trace_reader();
  trace_reader(trace_reader&&) noexcept;

  /// The next line, without its end. False: do not go on, finish() says why.
  bool line(std::string_view text);
  /// The next line is longer than the limit.
  void overlong_line();
  /// Errors: malformed_input (no request at all, a header that is wrong), too_large (over a limit).
  result<loaded_trace> finish() &&;

 private:
  struct state;
  std::unique_ptr<state> state_;
};

/// All of a stream. Errors: those of the reader, system_error (reading failed).
result<loaded_trace> read_trace(std::istream& in, const std::string& name, const trace_limits& limits = {});

/// Tokens a block in Mooncake's traces.
inline constexpr std::uint32_t mooncake_block_tokens = 512;

// Our own form: a header and a line a request, each with its end.
std::string trace_header(std::uint32_t block_tokens, std::string_view model);
/// `ttft_ms`: as observed.
std::string trace_line(const traced_request& request, std::optional<double> ttft_ms);

}  // namespace infernex::simulator
