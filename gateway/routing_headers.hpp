#pragma once

#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "actors/router/scheduler.hpp"
#include "actors/runtime/http/types.hpp"

namespace infernex::gateway {

/// Which headers tell about a request's place, and which tell the client of it. Names in lower case, each once.
struct header_plan {
  /// Of requests, besides those that are always looked at.
  std::vector<std::string> asked;
  /// Of answers: they carry the name of the engine that gave the answer, in base64, for the client to send back.
  std::vector<std::string> session_tokens;
};

/// A header's name as RFC 9110 has it, at most 64 bytes.
bool usable_header_name(std::string_view name);

/// `configured`: names in any case. `policy`: that of decisions taken here, whose plugins say what they look at; null:
/// routers on the bus decide, so what they look at must be configured, and every answer has `x-session-token`.
header_plan plan_headers(const std::vector<std::string>& configured, const router::scheduler_spec* policy);

/// The request's headers that routing plugins may look at, names in lower case: only those that say something about
/// routing, at most 1 KiB of each. Of secrets (authorization, cookie) hashes are told in their place, which is enough
/// to send equal ones to the same engine; a short secret can be guessed from its hash by who reads the bus.
std::vector<std::pair<std::string, std::string>> routing_headers(const http::fields& from_client,
                                                                 const header_plan& plan = {});

/// Puts an engine's name into an answer's headers, in place of what the engine said there.
void add_session_tokens(http::fields& answer, const header_plan& plan, std::string_view instance);

}  // namespace infernex::gateway
