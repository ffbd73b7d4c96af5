#include "actors/runtime/http/types.hpp"

#include <strings.h>

#include <algorithm>
#include <charconv>

namespace infernex::http {

namespace {

error bad_url(std::string_view text, std::string_view why) {
  return {errc::invalid_request, "url '" + std::string(text.substr(0, 200)) + "': " + std::string(why)};
}

}  // namespace

std::string_view find(const fields& in, std::string_view name) {
  for (const auto& f : in)
    if (f.name.size() == name.size() && ::strncasecmp(f.name.data(), name.data(), name.size()) == 0) return f.value;
  return {};
}

result<url> parse_url(std::string_view text) {
  constexpr std::string_view scheme = "http://";
  if (text.starts_with("https://")) return bad_url(text, "https is not supported, TLS ends before InferNex");
  if (!text.starts_with(scheme)) return bad_url(text, "has to start with http://");
  if (std::any_of(text.begin(), text.end(), [](unsigned char c) { return c <= 0x20 || c == 0x7f; }))
    return bad_url(text, "contains a space or control character");

  std::string_view rest = text.substr(scheme.size());
  rest = rest.substr(0, rest.find('#'));
  const auto end = std::min(rest.find_first_of("/?"), rest.size());
  std::string_view authority = rest.substr(0, end);
  url out;
  if (end < rest.size()) out.path = (rest[end] == '?' ? "/" : "") + std::string(rest.substr(end));
  if (authority.find('@') != std::string_view::npos) return bad_url(text, "user names in a url are not supported");

  std::string_view port;
  bool has_port = false;
  if (authority.starts_with('[')) {  // an IPv6 address
    const auto close = authority.find(']');
    if (close == std::string_view::npos) return bad_url(text, "'[' without ']'");
    out.at.host = authority.substr(1, close - 1);
    const std::string_view after = authority.substr(close + 1);
    if (!after.empty() && after.front() != ':') return bad_url(text, "something between ']' and the port");
    has_port = !after.empty();
    if (has_port) port = after.substr(1);
  } else {
    const auto colon = authority.find(':');
    out.at.host = authority.substr(0, colon);
    has_port = colon != std::string_view::npos;
    if (has_port) port = authority.substr(colon + 1);
  }
  if (out.at.host.empty()) return bad_url(text, "has no host");
  if (has_port) {
    unsigned value = 0;
    const auto [stop, problem] = std::from_chars(port.data(), port.data() + port.size(), value);
    if (problem != std::errc{} || stop != port.data() + port.size() || value == 0 || value > 65'535)
      return bad_url(text, "the port is a number between 1 and 65535");
    out.at.port = static_cast<std::uint16_t>(value);
  }
  return out;
}

}  // namespace infernex::http
