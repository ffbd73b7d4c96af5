#include "actors/runtime/http/head.hpp"

#include <strings.h>
#include <time.h>

#include <algorithm>
#include <array>
#include <charconv>

#include <boost/beast/http/status.hpp>

namespace infernex::http {

namespace {

bool same(std::string_view a, std::string_view b) {
  return a.size() == b.size() && ::strncasecmp(a.data(), b.data(), a.size()) == 0;
}

bool is_token(std::string_view name) {
  return !name.empty() && std::all_of(name.begin(), name.end(), [](unsigned char c) {
    return c > 0x20 && c < 0x7f &&
           std::string_view("()<>@,;:\\\"/[]?={}").find(static_cast<char>(c)) == std::string_view::npos;
  });
}

/// Anything but control characters; a tab is allowed. A line break here would let a value write fields of its own.
bool is_value(std::string_view value) {
  return std::all_of(value.begin(), value.end(), [](unsigned char c) { return (c >= 0x20 && c != 0x7f) || c == '\t'; });
}

bool is_framing(std::string_view name) {
  return same(name, "content-length") || same(name, "transfer-encoding") || same(name, "connection") ||
         same(name, "keep-alive");
}

void append_field(std::string& out, std::string_view name, std::string_view value) {
  out.append(name).append(": ").append(value).append("\r\n");
}

void append_number(std::string& out, std::uint64_t value) {
  std::array<char, 20> digits;
  const auto end = std::to_chars(digits.data(), digits.data() + digits.size(), value).ptr;
  out.append(digits.data(), end);
}

/// RFC 9110 section 5.6.7, formatted once a second and thread.
std::string_view date() {
  thread_local std::time_t at = 0;
  thread_local std::array<char, 32> text{};
  thread_local std::size_t size = 0;
  const std::time_t now = ::time(nullptr);
  if (now != at) {
    std::tm parts{};
    ::gmtime_r(&now, &parts);
    size = ::strftime(text.data(), text.size(), "%a, %d %b %Y %H:%M:%S GMT", &parts);
    at = now;
  }
  return {text.data(), size};
}

}  // namespace

void append_response_head(std::string& out, const response_line& line, const fields& extra) {
  out.append("HTTP/1.1 ");
  append_number(out, line.status);
  const auto reason = boost::beast::http::obsolete_reason(static_cast<boost::beast::http::status>(line.status));
  out.append(" ").append(reason.data(), reason.size()).append("\r\n");
  append_field(out, "Date", date());
  if (!line.content_type.empty() && is_value(line.content_type)) append_field(out, "Content-Type", line.content_type);
  for (const auto& [name, value] : extra)
    if (is_token(name) && is_value(value) && !is_framing(name)) append_field(out, name, value);
  if (line.body == framing::length) {
    out.append("Content-Length: ");
    append_number(out, line.length);
    out.append("\r\n");
  } else if (line.body == framing::chunked) {
    append_field(out, "Transfer-Encoding", "chunked");
  }
  if (!line.keep_alive)
    append_field(out, "Connection", "close");
  else if (line.http10)
    append_field(out, "Connection", "keep-alive");
  out.append("\r\n");
}

void append_request_head(std::string& out, const origin& to, std::string_view method, std::string_view target,
                         const fields& headers, std::size_t body_size) {
  out.append(method).append(" ").append(target).append(" HTTP/1.1\r\nHost: ");
  const bool bare_v6 = to.host.find(':') != std::string::npos && !to.host.starts_with('[');
  if (bare_v6) out.append("[");
  out.append(to.host);
  if (bare_v6) out.append("]");
  if (to.port != 80) {
    out.append(":");
    append_number(out, to.port);
  }
  out.append("\r\nConnection: keep-alive\r\n");
  if (body_size > 0 || (method != "GET" && method != "HEAD" && method != "DELETE")) {
    out.append("Content-Length: ");
    append_number(out, body_size);
    out.append("\r\n");
  }
  for (const auto& [name, value] : headers)
    if (is_token(name) && is_value(value) && !is_framing(name) && !same(name, "host") && !same(name, "expect"))
      append_field(out, name, value);
  out.append("\r\n");
}

bool valid_method(std::string_view method) { return is_token(method); }

bool valid_target(std::string_view target) {
  return !target.empty() && (target.front() == '/' || target == "*") &&
         std::all_of(target.begin(), target.end(), [](unsigned char c) { return c > 0x20 && c != 0x7f; });
}

}  // namespace infernex::http
