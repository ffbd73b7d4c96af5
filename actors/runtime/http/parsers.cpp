#include "actors/runtime/http/parsers.hpp"

#include <strings.h>

#include <algorithm>
#include <cstring>

#include <boost/beast/http/error.hpp>

namespace infernex::http {

namespace {

constexpr std::size_t max_reserved_body = 1 << 20;

bool same(std::string_view a, std::string_view b) {
  return a.size() == b.size() && ::strncasecmp(a.data(), b.data(), a.size()) == 0;
}

std::string_view path_of(std::string_view target) {
  // The absolute form, which a client sends to what it takes for a proxy (RFC 9112 section 3.2.2).
  if (target.starts_with("http://")) {
    const auto slash = target.find('/', 7);
    target = slash == std::string_view::npos ? "/" : target.substr(slash);
  }
  return target.substr(0, target.find('?'));
}

/// Beast bounds only what it has not consumed yet, so the sum over all fields is ours to bound.
bool spend(std::size_t& budget, std::size_t bytes) {
  if (bytes > budget) return false;
  budget -= bytes;
  return true;
}

}  // namespace

request_parser::request_parser(request& into, const server_settings& limits)
    : into_(into), header_budget_(limits.max_header_bytes) {
  header_limit(limits.max_header_bytes);
  body_limit(limits.max_body_bytes);
  eager(true);
}

const char* request_parser::objection() const {
  const auto hosts =
      std::count_if(into_.headers.begin(), into_.headers.end(), [](const field& f) { return same(f.name, "host"); });
  if (hosts > 1 || (hosts == 0 && version_ >= 11)) return "a request needs exactly one Host header";
  const bool coded = std::any_of(into_.headers.begin(), into_.headers.end(),
                                 [](const field& f) { return same(f.name, "transfer-encoding"); });
  if (coded && !chunked()) return "a Transfer-Encoding other than chunked is not supported";
  if (coded && version_ < 11) return "HTTP/1.0 has no Transfer-Encoding";
  return nullptr;
}

bool request_parser::expects_continue() const {
  return version_ >= 11 && same(find(into_.headers, "expect"), "100-continue");
}

void request_parser::on_request_impl(beast::http::verb, beast::string_view method, beast::string_view target,
                                     int version, beast::error_code& ec) {
  if (!spend(header_budget_, method.size() + target.size())) {
    ec = beast::http::error::header_limit;
    return;
  }
  into_.method.assign(method.data(), method.size());
  into_.target.assign(target.data(), target.size());
  into_.path = path_of(into_.target);
  version_ = version;
}

void request_parser::on_field_impl(beast::http::field, beast::string_view name, beast::string_view value,
                                   beast::error_code& ec) {
  if (!spend(header_budget_, name.size() + value.size() + 4)) {
    ec = beast::http::error::header_limit;
    return;
  }
  // Trailers arrive here too; merging them into the header could replace what was already decided on.
  if (in_header_) into_.headers.push_back({{name.data(), name.size()}, {value.data(), value.size()}});
}

void request_parser::on_header_impl(beast::error_code&) { in_header_ = false; }

void request_parser::on_body_init_impl(const boost::optional<std::uint64_t>& length, beast::error_code&) {
  if (length) into_.body.reserve(std::min<std::uint64_t>(*length, max_reserved_body));
}

std::size_t request_parser::on_body_impl(beast::string_view body, beast::error_code&) {
  into_.body.append(body.data(), body.size());
  return body.size();
}

std::size_t request_parser::on_chunk_body_impl(std::uint64_t, beast::string_view body, beast::error_code& ec) {
  return on_body_impl(body, ec);
}

response_parser::response_parser(unsigned& status, fields& headers, std::size_t max_header_bytes)
    : status_(status), headers_(headers), header_budget_(max_header_bytes) {
  header_limit(static_cast<std::uint32_t>(max_header_bytes));
  body_limit(boost::none);
  eager(true);
}

std::string_view response_parser::take_body() {
  const std::string_view taken(body_, body_size_);
  body_ = nullptr;
  body_size_ = 0;
  return taken;
}

void response_parser::on_response_impl(int code, beast::string_view, int, beast::error_code&) {
  status_ = static_cast<unsigned>(code);
}

void response_parser::on_field_impl(beast::http::field, beast::string_view name, beast::string_view value,
                                    beast::error_code& ec) {
  if (!spend(header_budget_, name.size() + value.size() + 4)) {
    ec = beast::http::error::header_limit;
    return;
  }
  if (in_header_) headers_.push_back({{name.data(), name.size()}, {value.data(), value.size()}});
}

void response_parser::on_header_impl(beast::error_code&) { in_header_ = false; }

std::size_t response_parser::on_body_impl(beast::string_view body, beast::error_code&) {
  auto* bytes = const_cast<char*>(body.data());  // our own read_buffer
  if (body_size_ == 0)
    body_ = bytes;
  else
    std::memmove(body_ + body_size_, bytes, body.size());
  body_size_ += body.size();
  return body.size();
}

std::size_t response_parser::on_chunk_body_impl(std::uint64_t, beast::string_view body, beast::error_code& ec) {
  return on_body_impl(body, ec);
}

}  // namespace infernex::http
