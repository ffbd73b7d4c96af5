#include "messages/errc.hpp"

namespace infernex {

namespace {

struct entry {
  std::string_view name;
  std::string_view description;
};

entry lookup(errc code) {
  switch (code) {
    case errc::none:
      return {"none", "no error"};
    case errc::malformed_message:
      return {"malformed_message", "not a valid message"};
    case errc::wrong_message_type:
      return {"wrong_message_type", "a message of another type"};
    case errc::malformed_subject:
      return {"malformed_subject", "not a subject of ours"};
    case errc::malformed_input:
      return {"malformed_input", "does not parse"};
    case errc::invalid_request:
      return {"invalid_request", "the request is not valid"};
    case errc::not_found:
      return {"not_found", "does not exist"};
    case errc::overloaded:
      return {"overloaded", "a bound is reached"};
    case errc::unreachable:
      return {"unreachable", "nobody answers there"};
    case errc::connection_lost:
      return {"connection_lost", "the connection broke"};
    case errc::timed_out:
      return {"timed_out", "the deadline passed"};
    case errc::cancelled:
      return {"cancelled", "cancelled"};
    case errc::bus_down:
      return {"bus_down", "the bus is not connected"};
    case errc::too_large:
      return {"too_large", "over the size bound"};
    case errc::invalid_config:
      return {"invalid_config", "the configuration is not valid"};
    case errc::system_error:
      return {"system_error", "the operating system refused"};
  }
  return {"unknown", "an error without a name"};
}

}  // namespace

std::string_view name(errc code) { return lookup(code).name; }

std::string_view describe(errc code) { return lookup(code).description; }

std::string render(const error& problem) {
  std::string text{name(problem.code)};
  text += ": ";
  text += describe(problem.code);
  if (!problem.detail.empty()) {
    text += " (";
    text += problem.detail;
    text += ')';
  }
  return text;
}

}  // namespace infernex
