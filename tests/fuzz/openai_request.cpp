// link: infernex_gateway_core
#include "gateway/openai_request.hpp"

#include <cstdlib>

#include <boost/json.hpp>

namespace {

using namespace infernex::gateway;

bool lies_in(std::string_view part, std::string_view whole) {
  return part.empty() || (part.data() >= whole.data() && part.data() + part.size() <= whole.data() + whole.size());
}

void check(api kind, std::string_view input) {
  static request_scanner scanner;
  std::string body(input);
  const auto read = scanner.scan(kind, body);
  if (body != input) std::abort();
  if (const auto* refused = std::get_if<bad_request>(&read)) {
    if (refused->message.empty()) std::abort();
    return;
  }
  const auto& request = std::get<openai_request>(read);
  if (request.n == 0 || !lies_in(request.prompt, body)) std::abort();
  for (const auto& field : request.rendering)
    if (field.name.empty() || field.json.empty() || !lies_in(field.json, body)) std::abort();
  // What passes is an object, and the engine will read it as the same text once more.
  boost::json::parse_options deep;
  deep.max_depth = 2 * request_scanner::max_depth;
  boost::system::error_code problem;
  const auto whole = boost::json::parse(body, problem, {}, deep);
  if (problem || !whole.is_object()) std::abort();
  std::string again(input);
  const auto second = scanner.scan(kind, again);
  const auto* same = std::get_if<openai_request>(&second);
  if (same == nullptr || same->prompt_hash != request.prompt_hash) std::abort();
}

}  // namespace

// Any bytes as the body of a chat or completions request: never a crash, the body unchanged, and what is accepted
// is JSON whose parts lie in it.
extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const std::string_view input(reinterpret_cast<const char*>(data), size);
  check(api::chat, input);
  check(api::completions, input);
  return 0;
}
