#include "messages/decode.hpp"

#include <map>
#include <memory>
#include <mutex>

#include <flatbuffers/idl.h>

#include "messages/view.hpp"

namespace infernex {

namespace {

/// Parsing a schema costs far more than rendering a message, so `infernex sub` keeps the parsers.
flatbuffers::Parser* parser_for(const root_table& table) {
  static std::map<std::string_view, std::unique_ptr<flatbuffers::Parser>> parsers;
  auto& parser = parsers[table.root];
  if (!parser) {
    flatbuffers::IDLOptions options;
    options.strict_json = true;
    options.indent_step = -1;
    options.output_default_scalars_in_json = true;
    parser = std::make_unique<flatbuffers::Parser>(options);
    if (!parser->Deserialize(table.schema.data(), table.schema.size())) parser.reset();
  }
  return parser.get();
}

}  // namespace

result<std::string> decode_to_json(std::span<const std::uint8_t> bytes) {
  const auto* table = find_root_table(bytes);
  if (!table)
    return error{errc::wrong_message_type, std::to_string(bytes.size()) + " bytes without an identifier of ours"};
  const auto owned = chunk::copy_of(bytes);
  if (auto problem = verify_message(owned.bytes(), *table); problem.code != errc::none) return problem;
  static std::mutex guard;
  const std::lock_guard lock(guard);
  auto* parser = parser_for(*table);
  if (!parser) return error{errc::malformed_message, "the embedded schema of " + std::string(table->root)};
  std::string body;
  if (!flatbuffers::GenerateText(*parser, owned.bytes().data(), &body))
    return error{errc::malformed_message, std::string(table->root) + " holds text that is not UTF-8"};
  return "{\"message\":\"" + std::string(table->root) + "\",\"body\":" + body + "}";
}

}  // namespace infernex
