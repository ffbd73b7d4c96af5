#include "gateway/error_message.hpp"

#include <simdjson.h>

namespace infernex::gateway {

std::string error_message(std::string_view json) {
  simdjson::ondemand::parser parser;
  const simdjson::padded_string padded(json);
  simdjson::ondemand::document document;
  std::string_view told;
  if (parser.iterate(padded).get(document) != simdjson::SUCCESS) return {};
  if (document["error"]["message"].get_string().get(told) != simdjson::SUCCESS) return {};
  return std::string(told);
}

}  // namespace infernex::gateway
