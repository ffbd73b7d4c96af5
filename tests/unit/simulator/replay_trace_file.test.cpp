#include "actors/simulator/replay_trace_file.hpp"

#include <sstream>

#include <doctest/doctest.h>

using namespace infernex;
using namespace infernex::simulator;

namespace {

result<loaded_trace> read(const std::string& text, const trace_limits& limits = {}) {
  std::istringstream in(text);
  return read_trace(in, "t.jsonl", limits);
}

std::string mooncake(int at, int prompt, const std::string& ids) {
  return "{\"timestamp\": " + std::to_string(at) + ", \"input_length\": " + std::to_string(prompt) +
         ", \"output_length\": 5, \"hash_ids\": [" + ids + "]}\n";
}

const std::string header = "{\"infernex_trace\":1,\"block_tokens\":4,\"model\":\"m\"}\n";
const std::string good = "{\"at_ms\":1,\"prompt_tokens\":9,\"output_tokens\":2,\"blocks\":[\"0xff\",\"17\",3]}\n";

}  // namespace

TEST_CASE("a trace of Mooncake's") {
  const auto got = read(mooncake(1000, 513, "0, 1") + mooncake(4000, 512, "0"));
  REQUIRE(got.ok());
  CHECK(got->bad_lines == 0);
  CHECK(got->model.empty());
  const auto& all = got->requests;
  REQUIRE(all.size() == 2);
  CHECK(all.block_tokens() == 512);
  CHECK(all[0].arrival_ms == 0);
  CHECK(all[0].prompt_tokens == 513);
  CHECK(all[0].output_tokens == 5);
  REQUIRE(all[0].blocks.size() == 2);
  CHECK(all[0].blocks[0] == mixed(1));
  CHECK(all[0].blocks[1] == mixed(2));
  CHECK(all[1].arrival_ms == 3000);
  CHECK(all[1].blocks[0] == all[0].blocks[0]);
  CHECK(got->observed_ttft.count() == 0);
}

TEST_CASE("a trace of our own: keys in every spelling, and what may be left out") {
  const auto got = read(header + good + "\n" +
                        "{\"at_ms\":3.5,\"prompt_tokens\":1,\"output_tokens\":1,\"blocks\":[],\"tenant\":\"0x10\","
                        "\"priority\":-2,\"session\":\"18446744073709551615\",\"ttft_ms\":40}");
  REQUIRE(got.ok());
  CHECK(got->bad_lines == 0);
  CHECK(got->model == "m");
  const auto& all = got->requests;
  REQUIRE(all.size() == 2);
  CHECK(all.block_tokens() == 4);
  CHECK(std::vector(all[0].blocks.begin(), all[0].blocks.end()) == std::vector<std::uint64_t>{255, 17, 3});
  CHECK(all[0].tenant == 0);
  CHECK(all[0].session == 0);
  CHECK(all[1].arrival_ms == 2.5);
  CHECK(all[1].tenant == 16);
  CHECK(all[1].priority == -2);
  CHECK(all[1].session == 18446744073709551615u);
  CHECK(got->observed_ttft.count() == 1);
  CHECK(*got->observed_ttft.quantile(0.5) == 40);
}

TEST_CASE("what is written is read back") {
  const std::vector<std::uint64_t> keys{1, 0xffffffffffffffff, 0x8000000000000000};
  const traced_request request{.arrival_ms = 0,
                               .prompt_tokens = 12,
                               .output_tokens = 7,
                               .blocks = keys,
                               .tenant = 9,
                               .priority = -3,
                               .session = 0xabcdef0123456789};
  const auto got = read(trace_header(4, "a \"quoted\" name") + trace_line(request, 1.5) +
                        trace_line({.arrival_ms = 12.25}, std::nullopt));
  REQUIRE(got.ok());
  CHECK(got->bad_lines == 0);
  CHECK(got->model == "a \"quoted\" name");
  REQUIRE(got->requests.size() == 2);
  const auto back = got->requests[0];
  CHECK(std::vector(back.blocks.begin(), back.blocks.end()) == keys);
  CHECK(back.prompt_tokens == 12);
  CHECK(back.output_tokens == 7);
  CHECK(back.tenant == 9);
  CHECK(back.priority == -3);
  CHECK(back.session == 0xabcdef0123456789);
  CHECK(got->requests[1].arrival_ms == 12.25);
  CHECK(*got->observed_ttft.most() == 1.5);
}

TEST_CASE("a bad line loses only itself, and is named") {
  const std::vector<std::pair<std::string, std::string>> bad{
      {"{\"at_ms\":1,", ""},
      {"[1,2]", "a JSON object is expected"},
      {header.substr(0, header.size() - 1), "a header in the middle of the file"},
      {"{\"prompt_tokens\":9,\"output_tokens\":2,\"blocks\":[]}", "at_ms: milliseconds, 0 or more"},
      {"{\"at_ms\":-1,\"prompt_tokens\":9,\"output_tokens\":2,\"blocks\":[]}", "at_ms: milliseconds, 0 or more"},
      {"{\"at_ms\":1,\"prompt_tokens\":0,\"output_tokens\":2,\"blocks\":[]}",
       "prompt_tokens: an integer from 1 to 16777216"},
      {"{\"at_ms\":1,\"prompt_tokens\":9,\"output_tokens\":1e9,\"blocks\":[]}",
       "output_tokens: an integer from 1 to 16777216"},
      {"{\"at_ms\":1,\"prompt_tokens\":9,\"output_tokens\":2,\"blocks\":[\"0xzz\"]}",
       "blocks: a list of keys: integers, or strings of digits (hex after 0x)"},
      {"{\"at_ms\":1,\"prompt_tokens\":9,\"output_tokens\":2,\"blocks\":[1,2,3,4]}",
       "blocks: at most 3 for so many prompt tokens, not 4"},
      {"{\"at_ms\":1,\"prompt_tokens\":9,\"output_tokens\":2,\"blocks\":[],\"tenant\":\"99999999999\"}",
       "tenant: an integer up to 4294967295, or a string of its digits (hex after 0x)"},
      {"{\"at_ms\":1,\"prompt_tokens\":9,\"output_tokens\":2,\"blocks\":[],\"priority\":\"high\"}",
       "priority: an integer of 32 bits"},
      {"{\"at_ms\":1,\"prompt_tokens\":9,\"output_tokens\":2,\"blocks\":[],\"ttft_ms\":\"\"}",
       "ttft_ms: milliseconds, 0 or more"},
  };
  std::string text = header;
  for (const auto& [line, problem] : bad) text += good + line + '\n';
  const auto got = read(text);
  REQUIRE(got.ok());
  CHECK(got->requests.size() == bad.size());
  CHECK(got->bad_lines == bad.size());
  REQUIRE(got->problems.size() == bad.size());
  for (std::size_t i = 0; i < bad.size(); ++i) {
    const auto place = "t.jsonl:" + std::to_string(3 + 2 * i) + ": ";
    CHECK(got->problems[i].starts_with(place));
    if (!bad[i].second.empty()) CHECK(got->problems[i] == place + bad[i].second);
  }
}

TEST_CASE("problems and lines have bounds, and a too long line does not end the file") {
  std::string text = header;
  for (int i = 0; i < 50; ++i) text += "bad\n";
  text += std::string(200'000, 'x') + '\n' + good;
  const auto got = read(text, {.max_line_bytes = 100, .max_problems = 5});
  REQUIRE(got.ok());
  CHECK(got->requests.size() == 1);
  CHECK(got->bad_lines == 51);
  CHECK(got->problems.size() == 5);
  const auto cut = read(header + good + std::string(200'000, 'x'), {.max_line_bytes = 100});
  REQUIRE(cut.ok());
  CHECK(cut->problems == std::vector<std::string>{"t.jsonl:3: a line that is too long"});
}

TEST_CASE("what makes a whole file useless is an error") {
  const auto why = [](const std::string& text, const trace_limits& limits = {}) {
    const auto got = read(text, limits);
    return got ? std::string() : render(got.failure());
  };
  CHECK(why("").find("t.jsonl: no request") != std::string::npos);
  CHECK(why(header).find("t.jsonl: no request") != std::string::npos);
  CHECK(why("{}\n").find("t.jsonl:1: timestamp: milliseconds, 0 or more") != std::string::npos);
  CHECK(why(good).find("t.jsonl:1: requests before the header") != std::string::npos);
  CHECK(why("{\"infernex_trace\":2,\"block_tokens\":4}\n" + good).find("version 2 of a trace, known is 1") !=
        std::string::npos);
  CHECK(why("{\"infernex_trace\":1}\n" + good).find("block_tokens: an integer") != std::string::npos);
  CHECK(why(header + good + good, {.max_requests = 1}).find("t.jsonl:3: more than 1 requests") != std::string::npos);
  CHECK(why(header + good + good, {.max_blocks = 5}).find("5 blocks") != std::string::npos);
}
