#include "gateway/routing_headers.hpp"

#include <string_view>

#include <xxhash.h>

namespace infernex::gateway {

namespace {

constexpr std::size_t longest_value = 1'024;

struct known_header {
  std::string_view name;
  bool secret;
};

constexpr known_header known[] = {
    {"authorization", true},
    {"cookie", true},
    {"epp-profile", false},
    {"x-forwarded-for", false},
    {"x-llm-d-inference-fairness-id", false},
    {"x-llm-d-inference-objective", false},
    {"x-prefiller-host-port", false},
    {"x-session-id", false},
    {"x-session-token", false},
    {"x-smg-routing-key", false},
    {"x-smg-target-worker", false},
};

}  // namespace

std::vector<std::pair<std::string, std::string>> routing_headers(const http::fields& from_client) {
  std::vector<std::pair<std::string, std::string>> out;
  for (const auto& [name, secret] : known) {
    const auto value = http::find(from_client, name);
    if (value.empty()) continue;
    out.emplace_back(name, secret ? "hash-" + std::to_string(XXH3_64bits(value.data(), value.size()))
                                  : std::string(value.substr(0, longest_value)));
  }
  return out;
}

}  // namespace infernex::gateway
