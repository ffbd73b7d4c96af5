#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include <simdjson.h>

#include "actors/simulator/replay_trace.hpp"

namespace infernex::simulator {

/// One JSON object of a trace, read strictly: keeps the first thing that is wrong.
class trace_fields {
 public:
  explicit trace_fields(simdjson::dom::object line) : line_(line) {}

  bool has(std::string_view name) const;
  /// A number of milliseconds, 0 or more.
  double milliseconds(std::string_view name);
  /// 1..most.
  std::uint32_t count(std::string_view name, std::uint32_t most);
  std::int32_t signed_integer(std::string_view name);
  /// A 64-bit value as integer, decimal digits in a string, or hex digits after 0x.
  std::uint64_t key(std::string_view name, std::uint64_t most);
  /// A list of them.
  void keys(std::string_view name, std::vector<std::uint64_t>& into);
  std::string text(std::string_view name);

  /// For what concerns more than one field.
  void refuse(std::string_view name, std::string_view expected);
  const std::optional<std::string>& problem() const { return problem_; }

 private:
  std::optional<simdjson::dom::element> required(std::string_view name, std::string_view expected);

  simdjson::dom::object line_;
  std::optional<std::string> problem_;
};

/// One request; what is wrong stands in `fields`.
traced_request mooncake_request(trace_fields& fields, std::uint32_t max_tokens, std::vector<std::uint64_t>& blocks);
traced_request own_request(trace_fields& fields, std::uint32_t max_tokens, std::uint32_t block_tokens,
                           std::vector<std::uint64_t>& blocks, std::optional<double>& ttft_ms);

}  // namespace infernex::simulator
