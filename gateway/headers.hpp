#pragma once

#include <cstdint>
#include <optional>
#include <string_view>

#include "actors/runtime/http/types.hpp"

namespace infernex::gateway {

/// The client's headers as the engine gets them: without hop-by-hop headers (RFC 9110 section 7.6.1), and
/// without those that the gateway sets or that would make the answer unreadable to it; with the request id.
/// To a rank of an engine with several, with its number, whatever the client said. Where the engine is not known to
/// have ranks, a client's own number passes: it is between the two of them.
http::fields to_engine(const http::fields& from_client, std::string_view request_id,
                       std::optional<std::uint32_t> data_parallel_rank = std::nullopt);

/// Puts a field in place of all of its name.
void set_header(http::fields& into, const http::field& one);
void drop_header(http::fields& from, std::string_view name);

/// The engine's headers as the client gets them, without those that the gateway sets.
http::fields to_client(const http::fields& from_engine);

}  // namespace infernex::gateway
