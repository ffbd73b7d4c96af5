#include "messages/decode.hpp"

#include <iostream>
#include <iterator>
#include <vector>

#include <CLI/CLI.hpp>

#include "messages/view.hpp"
#include "nodes/commands.hpp"

namespace infernex::nodes {

namespace {

int decode_stdin() {
  // One byte over the bound is enough to know that it is too large.
  std::vector<char> bytes;
  bytes.reserve(4096);
  for (std::istreambuf_iterator<char> in(std::cin), end; in != end && bytes.size() <= max_message_bytes; ++in)
    bytes.push_back(*in);
  const auto json = decode_to_json({reinterpret_cast<const std::uint8_t*>(bytes.data()), bytes.size()});
  if (!json) {
    std::cerr << "infernex decode: " << render(json.failure()) << '\n';
    return 1;
  }
  std::cout << *json << '\n';
  return 0;
}

}  // namespace

void add_decode(CLI::App& app, action& chosen) {
  app.add_subcommand("decode", "One FlatBuffers message on stdin -> one JSON line on stdout; for nats sub --translate")
      ->callback([&chosen] { chosen = decode_stdin; });
}

}  // namespace infernex::nodes
