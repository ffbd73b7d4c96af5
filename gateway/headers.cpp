#include "gateway/headers.hpp"

#include <algorithm>
#include <array>
#include <vector>

namespace infernex::gateway {
namespace {

constexpr std::array<std::string_view, 9> hop_by_hop = {
    "connection",        "keep-alive", "proxy-authenticate", "proxy-authorization", "proxy-connection", "te", "trailer",
    "transfer-encoding", "upgrade"};
/// Accept-Encoding: a compressed answer could not be watched for usage and events.
constexpr std::array<std::string_view, 5> not_to_engine = {"accept-encoding", "content-length", "expect", "host",
                                                           "x-request-id"};
constexpr std::array<std::string_view, 7> not_to_client = {
    "content-length", "content-type", "date", "server", "x-infernex-decision", "x-infernex-endpoint", "x-request-id"};

/// As vLLM's API server reads it.
constexpr std::string_view rank_header = "X-data-parallel-rank";

char lower(char c) { return c >= 'A' && c <= 'Z' ? static_cast<char>(c - 'A' + 'a') : c; }

bool same(std::string_view a, std::string_view b) {
  return std::equal(a.begin(), a.end(), b.begin(), b.end(), [](char x, char y) { return lower(x) == lower(y); });
}

template <class Names>
bool is_in(std::string_view name, const Names& names) {
  return std::any_of(names.begin(), names.end(), [name](std::string_view n) { return same(name, n); });
}

/// Headers that a Connection header declares to be for this hop.
std::vector<std::string_view> declared_hop_by_hop(const http::fields& headers) {
  std::vector<std::string_view> names;
  for (const auto& field : headers) {
    if (!same(field.name, "connection")) continue;
    std::string_view list = field.value;
    while (!list.empty()) {
      auto item = list.substr(0, list.find(','));
      list.remove_prefix(std::min(item.size() + 1, list.size()));
      item.remove_prefix(std::min(item.find_first_not_of(" \t"), item.size()));
      item = item.substr(0, item.find_last_not_of(" \t") + 1);
      if (!item.empty()) names.push_back(item);
    }
  }
  return names;
}

template <class Names>
http::fields without(const http::fields& headers, const Names& others) {
  const auto declared = declared_hop_by_hop(headers);
  http::fields kept;
  kept.reserve(headers.size() + 3);
  for (const auto& field : headers) {
    if (!is_in(field.name, hop_by_hop) && !is_in(field.name, others) && !is_in(field.name, declared)) {
      kept.push_back(field);
    }
  }
  return kept;
}

}  // namespace

http::fields to_engine(const http::fields& from_client, std::string_view request_id,
                       std::optional<std::uint32_t> data_parallel_rank) {
  auto headers = without(from_client, not_to_engine);
  if (data_parallel_rank) {
    set_header(headers, {std::string(rank_header), std::to_string(*data_parallel_rank)});
  }
  headers.push_back({"X-Request-Id", std::string(request_id)});
  return headers;
}

void set_header(http::fields& into, const http::field& one) {
  std::erase_if(into, [&](const auto& field) { return same(field.name, one.name); });
  into.push_back(one);
}

http::fields to_client(const http::fields& from_engine) { return without(from_engine, not_to_client); }

}  // namespace infernex::gateway
