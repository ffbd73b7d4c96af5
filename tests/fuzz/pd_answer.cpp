// link: infernex_proxy_core
// What clients and engines of a PD group send: bodies are rewritten, streams are put together.

#include <cstdlib>
#include <string>

#include "actors/proxy/conversation.hpp"

namespace {

using namespace infernex;
using namespace infernex::proxy;

void require(bool holds) {
  if (!holds) std::abort();
}

/// Whatever the client wrote, both legs get valid JSON in which the transfer is ours.
void rewrite(api kind, std::string_view body) {
  const auto facts = read_request(kind, body);
  if (!facts) return;
  const json_edit ours{"kv_transfer_params", "{\"ours\":1}"};
  for (const auto& out : {prefill_body(*facts, body, {&ours, 1}), decode_body(body, {&ours, 1}), plain_body(body)}) {
    require(read_request(kind, out).ok());
    const auto params = find_value(out, "kv_transfer_params");
    require(params.empty() || params == *ours.value);
    require(find_value(out, "bootstrap_host").empty());
  }
  require(find_value(prefill_body(*facts, body, {}), "max_tokens") == "1");
  continuation answer(*facts);
  std::string out;
  answer.take_event("data: {\"choices\":[{\"delta\":{\"content\":\"x\"},\"text\":\"x\"}]}\n\n", out);
  if (const auto next = answer.next_body(body)) require(read_request(kind, *next).ok());
}

std::string relayed(const request_facts& facts, std::string_view stream, std::size_t piece) {
  continuation answer(facts);
  event_splitter events;
  std::string out;
  for (int engine = 0; engine < 2; ++engine) {
    events.clear();
    bool over = false;
    for (std::size_t at = 0; at < stream.size() && !over; at += piece) {
      const std::string part(stream.substr(at, piece));
      events.feed(part);
      while (const auto event = events.next()) {
        const auto seen = answer.take_event(*event, out);
        over = over || seen.complete || seen.recomputed || !seen.failure.empty();
        if (over) break;
      }
    }
    answer.next_engine(out);
  }
  return out;
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const std::string_view input(reinterpret_cast<const char*>(data), size);
  rewrite(api::chat, input);
  rewrite(api::completions, input);
  for (const auto kind : {api::chat, api::completions}) {
    request_facts facts;
    facts.kind = kind;
    facts.stops = {"END", "\n\n"};
    // However it is cut, it is the same stream.
    const auto whole = relayed(facts, input, input.size() + 1);
    require(relayed(facts, input, 1) == whole);
    require(relayed(facts, input, 7) == whole);
    std::string out;
    continuation(facts).take_whole(input, out);
  }
  return 0;
}
