#include "gateway/headers.hpp"

#include <array>

#include "actors/runtime/http/end_to_end.hpp"

namespace infernex::gateway {
namespace {

/// Accept-Encoding: a compressed answer could not be watched for usage and events.
constexpr std::array<std::string_view, 5> not_to_engine = {"accept-encoding", "content-length", "expect", "host",
                                                           "x-request-id"};
constexpr std::array<std::string_view, 7> not_to_client = {
    "content-length", "content-type", "date", "server", "x-infernex-decision", "x-infernex-endpoint", "x-request-id"};

/// As vLLM's API server reads it.
constexpr std::string_view rank_header = "X-data-parallel-rank";

}  // namespace

http::fields to_engine(const http::fields& from_client, std::string_view request_id,
                       std::optional<std::uint32_t> data_parallel_rank) {
  auto headers = http::end_to_end(from_client, not_to_engine);
  if (data_parallel_rank) {
    set_header(headers, {std::string(rank_header), std::to_string(*data_parallel_rank)});
  }
  headers.push_back({"X-Request-Id", std::string(request_id)});
  return headers;
}

void drop_header(http::fields& from, std::string_view name) {
  std::erase_if(from, [&](const auto& field) { return http::same_name(field.name, name); });
}

void set_header(http::fields& into, const http::field& one) {
  drop_header(into, one.name);
  into.push_back(one);
}

http::fields to_client(const http::fields& from_engine) { return http::end_to_end(from_engine, not_to_client); }

}  // namespace infernex::gateway
