#include "actors/simulator/replay_trace_line.hpp"

#include <charconv>
#include <limits>

#include "actors/simulator/replay_trace_file.hpp"

namespace infernex::simulator {

namespace {

using simdjson::dom::element;

/// Beyond it (30 years) milliseconds are a mistake, and doubles begin to lose their fractions.
constexpr double most_milliseconds = 1e12;

std::optional<std::uint64_t> key_of(element value) {
  if (std::uint64_t number = 0; !value.get_uint64().get(number)) return number;
  std::string_view digits;
  if (value.get_string().get(digits)) return std::nullopt;
  const bool hex = digits.starts_with("0x");
  if (hex) digits.remove_prefix(2);
  std::uint64_t number = 0;
  const auto* end = digits.data() + digits.size();
  const auto [stop, problem] = std::from_chars(digits.data(), end, number, hex ? 16 : 10);
  if (problem != std::errc{} || stop != end) return std::nullopt;
  return number;
}

/// A prompt has a key for each full block, and may have one for the rest.
void check_blocks(trace_fields& fields, std::string_view name, const traced_request& request,
                  std::uint32_t block_tokens) {
  const auto most = (static_cast<std::uint64_t>(request.prompt_tokens) + block_tokens - 1) / block_tokens;
  if (request.blocks.size() > most)
    fields.refuse(name, "at most " + std::to_string(most) + " for so many prompt tokens, not " +
                            std::to_string(request.blocks.size()));
}

}  // namespace

bool trace_fields::has(std::string_view name) const {
  element value;
  return !line_[name].get(value) && !value.is_null();
}

std::optional<element> trace_fields::required(std::string_view name, std::string_view expected) {
  element value;
  if (!line_[name].get(value)) return value;
  refuse(name, expected);
  return std::nullopt;
}

void trace_fields::refuse(std::string_view name, std::string_view expected) {
  if (!problem_) problem_ = std::string(name) + ": " + std::string(expected);
}

double trace_fields::milliseconds(std::string_view name) {
  constexpr std::string_view expected = "milliseconds, 0 or more";
  const auto value = required(name, expected);
  double number = 0;
  if (!value || value->get_double().get(number) || !(number >= 0) || number > most_milliseconds) {
    refuse(name, expected);
    return 0;
  }
  return number;
}

std::uint32_t trace_fields::count(std::string_view name, std::uint32_t most) {
  const auto expected = "an integer from 1 to " + std::to_string(most);
  const auto value = required(name, expected);
  std::uint64_t number = 0;
  if (!value || value->get_uint64().get(number) || number == 0 || number > most) {
    refuse(name, expected);
    return 1;
  }
  return static_cast<std::uint32_t>(number);
}

std::int32_t trace_fields::signed_integer(std::string_view name) {
  constexpr std::string_view expected = "an integer of 32 bits";
  const auto value = required(name, expected);
  std::int64_t number = 0;
  if (!value || value->get_int64().get(number) || number < std::numeric_limits<std::int32_t>::min() ||
      number > std::numeric_limits<std::int32_t>::max()) {
    refuse(name, expected);
    return 0;
  }
  return static_cast<std::int32_t>(number);
}

std::uint64_t trace_fields::key(std::string_view name, std::uint64_t most) {
  const auto expected = "an integer up to " + std::to_string(most) + ", or a string of its digits (hex after 0x)";
  const auto value = required(name, expected);
  const auto number = value ? key_of(*value) : std::nullopt;
  if (!number || *number > most) refuse(name, expected);
  return number.value_or(0);
}

void trace_fields::keys(std::string_view name, std::vector<std::uint64_t>& into) {
  constexpr std::string_view expected = "a list of keys: integers, or strings of digits (hex after 0x)";
  into.clear();
  const auto value = required(name, expected);
  simdjson::dom::array list;
  if (!value || value->get_array().get(list)) return refuse(name, expected);
  for (const auto one : list) {
    const auto number = key_of(one);
    if (!number) return refuse(name, expected);
    into.push_back(*number);
  }
}

std::string trace_fields::text(std::string_view name) {
  constexpr std::string_view expected = "a string";
  const auto value = required(name, expected);
  std::string_view found;
  if (!value || value->get_string().get(found)) refuse(name, expected);
  return std::string(found);
}

traced_request mooncake_request(trace_fields& fields, std::uint32_t max_tokens, std::vector<std::uint64_t>& blocks) {
  traced_request request{.arrival_ms = fields.milliseconds("timestamp"),
                         .prompt_tokens = fields.count("input_length", max_tokens),
                         .output_tokens = fields.count("output_length", max_tokens)};
  fields.keys("hash_ids", blocks);
  // They are numbered from 0; whoever hashes keys may rely on their being hashes.
  for (auto& id : blocks) id = mixed(id + 1);
  request.blocks = blocks;
  check_blocks(fields, "hash_ids", request, mooncake_block_tokens);
  return request;
}

traced_request own_request(trace_fields& fields, std::uint32_t max_tokens, std::uint32_t block_tokens,
                           std::vector<std::uint64_t>& blocks, std::optional<double>& ttft_ms) {
  traced_request request{.arrival_ms = fields.milliseconds("at_ms"),
                         .prompt_tokens = fields.count("prompt_tokens", max_tokens),
                         .output_tokens = fields.count("output_tokens", max_tokens)};
  fields.keys("blocks", blocks);
  request.blocks = blocks;
  check_blocks(fields, "blocks", request, block_tokens);
  if (fields.has("tenant"))
    request.tenant = static_cast<std::uint32_t>(fields.key("tenant", std::numeric_limits<std::uint32_t>::max()));
  if (fields.has("priority")) request.priority = fields.signed_integer("priority");
  if (fields.has("session")) request.session = fields.key("session", std::numeric_limits<std::uint64_t>::max());
  ttft_ms.reset();
  if (fields.has("ttft_ms")) ttft_ms = fields.milliseconds("ttft_ms");
  return request;
}

}  // namespace infernex::simulator
