#include "actors/simulator/replay_trace_file.hpp"

#include <cstdio>
#include <istream>
#include <limits>

#include <boost/json.hpp>
#include <simdjson.h>

#include "actors/simulator/replay_trace_line.hpp"

namespace infernex::simulator {

namespace {

constexpr std::string_view version_field = "infernex_trace";
constexpr std::uint32_t version = 1;
constexpr std::uint32_t max_block_tokens = 65'536;

}  // namespace

struct trace_reader::state {
  enum class form { unknown, own, mooncake };

  std::string name;
  trace_limits limits;
  simdjson::dom::parser parser;
  loaded_trace read;
  form as = form::unknown;
  std::uint64_t line_number = 0;
  std::vector<std::uint64_t> blocks;
  std::optional<error> fatal;

  std::string place() const { return name + ':' + std::to_string(line_number) + ": "; }

  void bad(std::string_view what) {
    if (++read.bad_lines <= limits.max_problems) read.problems.push_back(place() + std::string(what));
  }

  void header(trace_fields& fields) {
    const auto stated = fields.count(version_field, std::numeric_limits<std::uint32_t>::max());
    const auto block_tokens = fields.count("block_tokens", max_block_tokens);
    if (fields.has("model")) read.model = fields.text("model");
    if (fields.problem()) {
      fatal = error{errc::malformed_input, place() + *fields.problem()};
    } else if (stated != version) {
      fatal = error{errc::malformed_input,
                    place() + "version " + std::to_string(stated) + " of a trace, known is " + std::to_string(version)};
    } else {
      as = form::own;
      read.requests = trace(block_tokens);
    }
  }

  void request(trace_fields& fields) {
    std::optional<double> ttft_ms;
    const auto one = as == form::own
                         ? own_request(fields, limits.max_tokens, read.requests.block_tokens(), blocks, ttft_ms)
                         : mooncake_request(fields, limits.max_tokens, blocks);
    if (fields.problem()) return bad(*fields.problem());
    if (read.requests.size() >= limits.max_requests ||
        read.requests.total_blocks() + blocks.size() > limits.max_blocks) {
      fatal = error{errc::too_large, place() + "more than " + std::to_string(limits.max_requests) + " requests or " +
                                         std::to_string(limits.max_blocks) + " blocks"};
      return;
    }
    read.requests.add(one);
    if (ttft_ms) read.observed_ttft.add(*ttft_ms);
  }

  void line(std::string_view text) {
    if (text.find_first_not_of(" \t\r") == std::string_view::npos) return;
    if (text.size() > limits.max_line_bytes) return bad("a line that is too long");
    simdjson::dom::element document;
    simdjson::dom::object fields_of_line;
    if (const auto problem = parser.parse(text.data(), text.size()).get(document); problem != simdjson::SUCCESS)
      return bad(simdjson::error_message(problem));
    if (document.get_object().get(fields_of_line)) return bad("a JSON object is expected");
    trace_fields fields(fields_of_line);
    if (fields.has(version_field)) {
      if (as == form::unknown) return header(fields);
      return bad("a header in the middle of the file");
    }
    if (as == form::unknown && fields.has("at_ms")) {
      fatal = error{errc::malformed_input, place() + "requests before the header ({\"infernex_trace\":1,…})"};
      return;
    }
    if (as == form::unknown) {
      as = form::mooncake;
      read.requests = trace(mooncake_block_tokens);
    }
    request(fields);
  }
};

trace_reader::trace_reader(std::string name, trace_limits limits) : state_(std::make_unique<state>()) {
  state_->name = std::move(name);
  state_->limits = limits;
}

trace_reader::~trace_reader() = default;
trace_reader::trace_reader(trace_reader&&) noexcept = default;

bool trace_reader::line(std::string_view text) {
  ++state_->line_number;
  state_->line(text);
  return !state_->fatal;
}

void trace_reader::overlong_line() {
  ++state_->line_number;
  state_->bad("a line that is too long");
}

result<loaded_trace> trace_reader::finish() && {
  if (state_->fatal) return *state_->fatal;
  auto& read = state_->read;
  if (read.requests.empty())
    return error{errc::malformed_input, read.problems.empty() ? state_->name + ": no request" : read.problems.front()};
  read.requests.arrange();
  return std::move(read);
}

result<loaded_trace> read_trace(std::istream& in, const std::string& name, const trace_limits& limits) {
  trace_reader reader(name, limits);
  std::vector<char> piece(1 << 16);
  std::string line;
  bool overlong = false;
  const auto end_line = [&] {
    const bool go_on = overlong ? (reader.overlong_line(), true) : reader.line(line);
    line.clear();
    overlong = false;
    return go_on;
  };
  while (in.read(piece.data(), static_cast<std::streamsize>(piece.size())) || in.gcount() > 0) {
    std::string_view rest(piece.data(), static_cast<std::size_t>(in.gcount()));
    while (!rest.empty()) {
      const auto end = rest.find('\n');
      const auto part = rest.substr(0, end);
      // An endless line is passed over, not kept.
      overlong = overlong || line.size() + part.size() > limits.max_line_bytes;
      if (!overlong) line += part;
      if (end == std::string_view::npos) break;
      rest.remove_prefix(end + 1);
      if (!end_line()) return std::move(reader).finish();
    }
  }
  if (in.bad()) return error{errc::system_error, name + ": reading failed"};
  if (!line.empty() || overlong) end_line();
  return std::move(reader).finish();
}

std::string trace_header(std::uint32_t block_tokens, std::string_view model) {
  boost::json::object header;
  header[version_field] = version;
  header["block_tokens"] = block_tokens;
  if (!model.empty()) header["model"] = model;
  return boost::json::serialize(header) + '\n';
}

std::string trace_line(const traced_request& request, std::optional<double> ttft_ms) {
  // By hand: a line may have thousands of keys, and a JSON tree of them is ten times the text.
  const auto hex = [](std::uint64_t value) {
    char digits[24];
    const auto length = std::snprintf(digits, sizeof digits, "\"0x%llx\"", static_cast<unsigned long long>(value));
    return std::string(digits, static_cast<std::size_t>(length));
  };
  const auto thousandths = [](double value) {
    char digits[32];
    const auto length = std::snprintf(digits, sizeof digits, "%.3f", value);
    return std::string(digits, static_cast<std::size_t>(length));
  };
  std::string line = "{\"at_ms\":" + thousandths(request.arrival_ms) +
                     ",\"prompt_tokens\":" + std::to_string(request.prompt_tokens) +
                     ",\"output_tokens\":" + std::to_string(request.output_tokens) + ",\"blocks\":[";
  for (const auto key : request.blocks) line += hex(key) + ',';
  if (!request.blocks.empty()) line.pop_back();
  line += ']';
  if (request.tenant != 0) line += ",\"tenant\":" + hex(request.tenant);
  if (request.priority != 0) line += ",\"priority\":" + std::to_string(request.priority);
  if (request.session != 0) line += ",\"session\":" + hex(request.session);
  if (ttft_ms) line += ",\"ttft_ms\":" + thousandths(*ttft_ms);
  return line + "}\n";
}

}  // namespace infernex::simulator
