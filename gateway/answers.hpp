#pragma once

#include <chrono>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "gateway/choice.hpp"
#include "gateway/openai_request.hpp"
#include "messages/errc.hpp"

namespace infernex::gateway {

/// An error as the client gets it: in OpenAI's shape, `{"error":{message, type, param, code}}`.
struct answer {
  unsigned status = 500;
  std::string message;
  std::string code;
  std::string param;
  std::optional<std::chrono::seconds> retry_after;
};

answer bad_body(const bad_request& problem);
answer unknown_model(std::string_view model);
answer unknown_path(std::string_view method, std::string_view path);
/// `allowed` e.g. `POST`.
answer wrong_method(std::string_view method, std::string_view path, std::string_view allowed);
/// Nobody can take the request now; `reason` comes from the decision.
answer no_engine(std::string_view model, std::string_view reason);
/// Every engine tried has failed; `story` says which and how.
answer engines_failed(std::string_view story);
answer too_slow(std::chrono::milliseconds limit);
/// Every engine is saturated: 429 at once, 503 after a wait.
answer all_saturated(std::string_view model, std::string_view reason, const shed_request& how);
answer too_busy(std::uint32_t max_in_flight);
/// An engine's answer is over the bound, or not HTTP.
answer bad_answer(std::string_view instance, std::string_view why);

/// How an engine's failure is told: `refused the connection`, `broke the connection`, …
std::string_view story_of(errc how);

/// One line for a response header: printable ASCII, at most `most` bytes.
std::string header_line(std::string_view text, std::size_t most = 512);

/// A client's request id if it can go into headers and logs as it is (1..128 of [A-Za-z0-9._:/+-=@]).
bool usable_request_id(std::string_view id);

}  // namespace infernex::gateway
