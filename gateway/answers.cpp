#include "gateway/answers.hpp"

#include <algorithm>

namespace infernex::gateway {
namespace {

std::string readable(std::chrono::milliseconds duration) {
  const auto count = duration.count();
  return count % 1000 == 0 ? std::to_string(count / 1000) + " s" : std::to_string(count) + " ms";
}

}  // namespace

answer bad_body(const bad_request& problem) { return {400, problem.message, {}, problem.param, {}}; }

answer unknown_model(std::string_view model) {
  return {404, "The model `" + std::string(model) + "` does not exist.", "model_not_found", "model", {}};
}

answer unknown_path(std::string_view method, std::string_view path) {
  return {404, "There is no " + std::string(method) + " " + header_line(path, 200), "not_found", {}, {}};
}

answer wrong_method(std::string_view method, std::string_view path, std::string_view allowed) {
  return {405,
          header_line(path, 200) + " takes " + std::string(allowed) + ", not " + header_line(method, 32),
          "method_not_allowed",
          {},
          {}};
}

answer no_engine(std::string_view model, std::string_view reason) {
  return {503,
          "No engine can take a request for `" + std::string(model) + "` now: " + std::string(reason),
          "no_engine_ready",
          {},
          std::chrono::seconds(1)};
}

answer engines_failed(std::string_view story) {
  return {503, "No engine could answer: " + std::string(story), "engines_failed", {}, std::chrono::seconds(1)};
}

answer too_slow(std::chrono::milliseconds limit) {
  return {
      504, "The answer was not complete within " + readable(limit) + "; the request was cancelled.", "timeout", {}, {}};
}

answer all_saturated(std::string_view model, std::string_view reason, const shed_request& how) {
  return {how.waited ? 503U : 429U,
          "`" + std::string(model) + "` is saturated: " + std::string(reason),
          how.waited ? "queue_timeout" : "engines_saturated",
          {},
          std::chrono::ceil<std::chrono::seconds>(how.retry_after)};
}

answer too_busy(std::uint32_t max_in_flight) {
  return {429,
          "The gateway is answering " + std::to_string(max_in_flight) + " requests already, its limit.",
          "too_many_requests",
          {},
          std::chrono::seconds(1)};
}

answer bad_answer(std::string_view instance, std::string_view why) {
  return {502,
          "The answer of engine " + std::string(instance) + " cannot be passed on: " + std::string(why),
          "bad_answer",
          {},
          {}};
}

std::string_view story_of(errc how) {
  switch (how) {
    case errc::unreachable:
      return "refused the connection";
    case errc::connection_lost:
      return "broke the connection";
    case errc::timed_out:
      return "did not answer in time";
    case errc::malformed_input:
      return "answered something that is not HTTP";
    case errc::too_large:
      return "sent more than the gateway accepts";
    default:
      return describe(how);
  }
}

std::string header_line(std::string_view text, std::size_t most) {
  std::string line(text.substr(0, most));
  std::replace_if(
      line.begin(), line.end(), [](char c) { return c < 0x20 || c > 0x7e; }, '?');
  return line;
}

bool usable_request_id(std::string_view id) {
  constexpr std::string_view others = "._:/+-=@";
  return !id.empty() && id.size() <= 128 && std::all_of(id.begin(), id.end(), [&](char c) {
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') ||
           others.find(c) != std::string_view::npos;
  });
}

}  // namespace infernex::gateway
