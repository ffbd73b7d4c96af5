#include "actors/router/kvmanager.hpp"

#include <cstdio>
#include <memory>
#include <stdexcept>

#include <boost/json.hpp>

namespace infernex::router {

namespace json = boost::json;

namespace {

constexpr std::string_view scheme = "http://";

std::string_view host_of(std::string_view url) {
  if (url.starts_with(scheme)) url.remove_prefix(scheme.size());
  while (url.ends_with('/')) url.remove_suffix(1);
  return url;
}

std::unique_ptr<fb::KvOverlapT> read_overlap(const json::value& row) {
  auto overlap = std::make_unique<fb::KvOverlapT>();
  overlap->instance = row.at("instance").as_string().c_str();
  overlap->blocks = row.at("blocks").to_number<std::uint32_t>();
  overlap->device_blocks = row.at("device_blocks").to_number<std::uint32_t>();
  overlap->host_blocks = row.at("host_blocks").to_number<std::uint32_t>();
  return overlap;
}

std::unique_ptr<fb::KvCoverageT> read_coverage(const json::value& row) {
  auto cover = std::make_unique<fb::KvCoverageT>();
  cover->instance = row.at("instance").as_string().c_str();
  cover->exact = row.at("exact").as_bool();
  cover->sequence = row.at("sequence").to_number<std::uint64_t>();
  cover->keys = row.at("keys").to_number<std::uint64_t>();
  cover->age_ms = row.at("age_ms").to_number<std::uint64_t>();
  return cover;
}

/// Throws what Boost.JSON throws for a field that is missing or of another type.
fb::KvMatchReplyT read_reply(const json::value& answer) {
  fb::KvMatchReplyT reply;
  for (const auto& match : answer.at("matches").as_array()) {
    auto& into = *reply.matches.emplace_back(std::make_unique<fb::KvMatchT>());
    for (const auto& row : match.at("instances").as_array()) into.overlaps.push_back(read_overlap(row));
  }
  for (const auto& row : answer.at("coverage").as_array()) reply.coverage.push_back(read_coverage(row));
  return reply;
}

}  // namespace

kvmanager_mistake find_mistake(const kvmanager_settings& settings) {
  if (settings.url.starts_with("https://")) return {"url", "only http:// is spoken: TLS ends before us"};
  const auto host = host_of(settings.url);
  const bool is_ipv6 = host.starts_with('[') && host.ends_with(']');
  if (host.empty() || (!is_ipv6 && host.find_first_of(":/?#@ ") != std::string_view::npos))
    return {"url", "a host with or without http://, its port and path under `port` and `matchPath`"};
  if (!settings.match_path.starts_with('/')) return {"matchPath", "a path, beginning with /"};
  return {};
}

std::string target_of(const kvmanager_settings& settings) {
  return std::string(scheme) + std::string(host_of(settings.url)) + ":" + std::to_string(settings.port) +
         settings.match_path;
}

std::string kvmanager_question(const fb::KvMatchQueryT& question) {
  std::string body = "{\"model\":" + json::serialize(json::string(question.model)) + ",\"block_keys\":[";
  for (const auto& chain : question.chains) {
    body += body.back() == '[' ? "[" : ",[";
    for (const auto key : chain->keys) {
      char digits[20];
      std::snprintf(digits, sizeof digits, "\"%016llx\"", static_cast<unsigned long long>(key));
      if (body.back() != '[') body += ',';
      body += digits;
    }
    body += ']';
  }
  return body += "]}";
}

result<view<fb::KvMatchReply>> read_kvmanager_answer(unsigned status, std::string_view body, std::string_view model,
                                                     std::size_t chains) {
  if (status == 404) return error{errc::not_found, "the KV manager answers 404"};
  if (status == 429 || status == 503)
    return error{errc::overloaded, "the KV manager answers " + std::to_string(status)};
  if (status != 200) return error{errc::malformed_input, "the KV manager answers " + std::to_string(status)};
  try {
    auto reply = read_reply(json::parse({body.data(), body.size()}));
    if (reply.matches.size() != chains) return error{errc::malformed_input, "not one match for each chain"};
    reply.model = model;
    const auto bytes = encode(reply);
    return view<fb::KvMatchReply>::verify(chunk::copy_of(bytes_of(bytes)));
  } catch (const std::exception& problem) {
    return error{errc::malformed_input, problem.what()};
  }
}

}  // namespace infernex::router
