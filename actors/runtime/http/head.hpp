#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "actors/runtime/http/types.hpp"

/// Writes message heads. Internal to this folder.
namespace infernex::http {

enum class framing : std::uint8_t { length, chunked, until_close, none };

struct response_line {
  unsigned status = 200;
  std::string_view content_type;
  framing body = framing::length;
  /// Of a body with a known length.
  std::size_t length = 0;
  bool keep_alive = true;
  /// An HTTP/1.0 client is told explicitly that the connection stays.
  bool http10 = false;
};

/// Appends a status line and header fields with the empty line. Fields of `extra` that would break the framing
/// (Content-Length, Transfer-Encoding, Connection, Keep-Alive, or a name or value with control characters) are
/// left out.
void append_response_head(std::string& out, const response_line& line, const fields& extra);

/// Request line and fields; Host, Content-Length and Connection are ours, the caller's are left out.
void append_request_head(std::string& out, const origin& to, std::string_view method, std::string_view target,
                         const fields& headers, std::size_t body_size);

/// Whether these can go into a request line: a token; not empty, starts with '/' (or is '*'), nothing up to 0x20.
bool valid_method(std::string_view method);
bool valid_target(std::string_view target);

}  // namespace infernex::http
