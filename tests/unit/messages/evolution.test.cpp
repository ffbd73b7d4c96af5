// An older and a newer schema talk to each other. The neighbours are made from the schema in use: the newer
// has fields appended, the older lacks the last ones.
#include <fstream>
#include <sstream>

#include <doctest/doctest.h>
#include <flatbuffers/idl.h>

#include "messages/view.hpp"

using namespace infernex;

namespace {

std::string schema_text() {
  std::ifstream file(INFERNEX_SOURCE_DIR "/messages/engine_load.fbs");
  std::ostringstream text;
  text << file.rdbuf();
  return text.str();
}

/// A parser for a variant of engine_load.fbs.
struct variant {
  flatbuffers::Parser parser;
  explicit variant(const std::string& schema) {
    static const char* include_paths[] = {INFERNEX_SOURCE_DIR "/messages", nullptr};
    parser.opts.strict_json = true;
    REQUIRE_MESSAGE(parser.Parse(schema.c_str(), include_paths), parser.error_);
  }
  std::vector<std::uint8_t> encode(const char* json) {
    REQUIRE_MESSAGE(parser.Parse(json), parser.error_);
    return {parser.builder_.GetBufferPointer(), parser.builder_.GetBufferPointer() + parser.builder_.GetSize()};
  }
  std::string decode(std::span<const std::uint8_t> bytes) {
    std::string json;
    CHECK(flatbuffers::GenerateText(parser, bytes.data(), &json));
    return json;
  }
};

std::string newer_schema() {
  auto text = schema_text();
  const auto end = text.find("\n}");
  REQUIRE(end != std::string::npos);
  return text.insert(end, "\n  queue_depth_p99: double = null;\n  zones: [string];");
}

std::string older_schema() {
  auto text = schema_text();
  const auto from = text.find("  /// Tokens a second since");
  const auto end = text.find("\n}");
  REQUIRE(from != std::string::npos);
  REQUIRE(end != std::string::npos);
  return text.erase(from, end - from);
}

fb::EngineLoadT todays_load() {
  fb::EngineLoadT load;
  load.model = "m";
  load.running = 4;
  load.scrape_ms = 1.5;
  return load;
}

}  // namespace

TEST_CASE("a newer sender is understood: fields we do not know are skipped") {
  const auto bytes = variant(newer_schema())
                         .encode(R"({"model":"m","running":4,"scrape_ms":1.5,"queue_depth_p99":9.0,"zones":["a"]})");
  const auto load = view<fb::EngineLoad>::verify(chunk::copy_of(bytes));
  REQUIRE(load);
  CHECK(*(*load)->running() == 4);
  CHECK(*(*load)->scrape_ms() == doctest::Approx(1.5));
}

TEST_CASE("an older sender is understood: fields it does not know are absent, not zero") {
  const auto bytes = variant(older_schema()).encode(R"({"model":"m","running":4})");
  const auto load = view<fb::EngineLoad>::verify(chunk::copy_of(bytes));
  REQUIRE(load);
  CHECK(*(*load)->running() == 4);
  CHECK_FALSE((*load)->scrape_ms().has_value());
}

TEST_CASE("older and newer receivers understand today's message") {
  const auto buffer = encode(todays_load());
  const auto at_older = variant(older_schema()).decode(bytes_of(buffer));
  CHECK(at_older.find("\"running\": 4") != std::string::npos);
  CHECK(at_older.find("scrape_ms") == std::string::npos);
  const auto at_newer = variant(newer_schema()).decode(bytes_of(buffer));
  CHECK(at_newer.find("\"scrape_ms\": 1.5") != std::string::npos);
  CHECK(at_newer.find("queue_depth_p99") == std::string::npos);
}
