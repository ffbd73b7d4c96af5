#include "gateway/routing_headers.hpp"

#include <algorithm>
#include <string_view>

#include <xxhash.h>

#include "actors/router/policy_headers.hpp"
#include "gateway/headers.hpp"

namespace infernex::gateway {

namespace {

constexpr std::size_t longest_name = 64;
constexpr std::size_t longest_value = 1'024;
constexpr std::size_t most_names = 64;

struct known_header {
  std::string_view name;
  bool secret;
};

constexpr known_header known[] = {
    {"authorization", true},
    {"cookie", true},
    {"epp-profile", false},
    {"x-decoder-host-port", false},
    {"x-forwarded-for", false},
    {"x-gateway-inference-fairness-id", false},
    {"x-gateway-inference-objective", false},
    {"x-llm-d-inference-fairness-id", false},
    {"x-llm-d-inference-objective", false},
    {"x-llm-d-slo-tpot-ms", false},
    {"x-llm-d-slo-ttft-ms", false},
    {"x-prefiller-host-port", false},
    {"x-session-id", false},
    {"x-session-token", false},
    {"x-slo-tpot-ms", false},
    {"x-slo-ttft-ms", false},
    {"x-smg-routing-key", false},
    {"x-smg-target-worker", false},
};

std::string lower(std::string_view name) {
  std::string out(name);
  std::transform(out.begin(), out.end(), out.begin(),
                 [](char c) { return c >= 'A' && c <= 'Z' ? static_cast<char>(c - 'A' + 'a') : c; });
  return out;
}

bool is_known(std::string_view name) {
  return std::any_of(std::begin(known), std::end(known), [&](const auto& one) { return one.name == name; });
}

void add(std::vector<std::string>& names, std::string name) {
  if (names.size() < most_names && usable_header_name(name) &&
      std::find(names.begin(), names.end(), name) == names.end())
    names.push_back(std::move(name));
}

/// RFC 4648 section 4.
std::string base64(std::string_view bytes) {
  constexpr std::string_view digits = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
  std::string out;
  out.reserve((bytes.size() + 2) / 3 * 4);
  for (std::size_t at = 0; at < bytes.size(); at += 3) {
    const auto given = std::min<std::size_t>(3, bytes.size() - at);
    std::uint32_t bits = 0;
    for (std::size_t i = 0; i < 3; ++i) bits = bits << 8 | (i < given ? static_cast<unsigned char>(bytes[at + i]) : 0U);
    for (std::size_t i = 0; i < 4; ++i) out += i <= given ? digits[bits >> (18 - 6 * i) & 63] : '=';
  }
  return out;
}

}  // namespace

bool usable_header_name(std::string_view name) {
  constexpr std::string_view marks = "!#$%&'*+-.^_`|~";
  return !name.empty() && name.size() <= longest_name && std::all_of(name.begin(), name.end(), [&](char c) {
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') ||
           marks.find(c) != std::string_view::npos;
  });
}

header_plan plan_headers(const std::vector<std::string>& configured, const router::scheduler_spec* policy) {
  header_plan plan;
  const auto ask = [&](std::string name) {
    if (!is_known(name)) add(plan.asked, std::move(name));
  };
  for (const auto& name : configured) ask(lower(name));
  if (!policy) {
    add(plan.session_tokens, "x-session-token");
    return plan;
  }
  for (auto& one : router::headers_of(*policy)) {
    // A header that HTTP itself or the gateway sets is no place for a token.
    if (one.names_engine && !to_client({{one.name, "token"}}).empty()) add(plan.session_tokens, one.name);
    ask(std::move(one.name));
  }
  return plan;
}

std::vector<std::pair<std::string, std::string>> routing_headers(const http::fields& from_client,
                                                                 const header_plan& plan) {
  std::vector<std::pair<std::string, std::string>> out;
  const auto take = [&](std::string_view name, bool secret) {
    const auto value = http::find(from_client, name);
    if (value.empty()) return;
    out.emplace_back(name, secret ? "hash-" + std::to_string(XXH3_64bits(value.data(), value.size()))
                                  : std::string(value.substr(0, longest_value)));
  };
  for (const auto& [name, secret] : known) take(name, secret);
  for (const auto& name : plan.asked) take(name, false);
  return out;
}

void add_session_tokens(http::fields& answer, const header_plan& plan, std::string_view instance) {
  for (const auto& name : plan.session_tokens) {
    std::erase_if(answer, [&](const auto& field) { return lower(field.name) == name; });
    answer.push_back({name, base64(instance)});
  }
}

}  // namespace infernex::gateway
