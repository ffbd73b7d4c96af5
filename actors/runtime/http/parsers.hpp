#pragma once

#include <boost/beast/http/basic_parser.hpp>

#include "actors/runtime/http/server.hpp"

/// Beast's incremental HTTP/1 parser, writing straight into our types. Internal to this folder.
namespace infernex::http {

namespace beast = boost::beast;

/// Fills a request, body included, within the settings' bounds.
class request_parser final : public beast::http::basic_parser<true> {
 public:
  request_parser(request& into, const server_settings& limits);

  /// What is wrong with a head that is valid HTTP to Beast: RFC 9112 demands a 400 for these. Null if nothing.
  const char* objection() const;
  /// The client waits for `100 Continue` before it sends the body.
  bool expects_continue() const;
  bool http10() const { return version_ < 11; }

 private:
  void on_request_impl(beast::http::verb verb, beast::string_view method, beast::string_view target, int version,
                       beast::error_code& ec) override;
  void on_response_impl(int, beast::string_view, int, beast::error_code&) override {}
  void on_field_impl(beast::http::field, beast::string_view name, beast::string_view value,
                     beast::error_code& ec) override;
  void on_header_impl(beast::error_code& ec) override;
  void on_body_init_impl(const boost::optional<std::uint64_t>& length, beast::error_code& ec) override;
  std::size_t on_body_impl(beast::string_view body, beast::error_code& ec) override;
  void on_chunk_header_impl(std::uint64_t, beast::string_view, beast::error_code&) override {}
  std::size_t on_chunk_body_impl(std::uint64_t, beast::string_view body, beast::error_code& ec) override;
  void on_finish_impl(beast::error_code&) override {}

  request& into_;
  std::size_t header_budget_;
  int version_ = 11;
  bool in_header_ = true;
};

/// Fills status and fields; hands out the body in place.
class response_parser final : public beast::http::basic_parser<false> {
 public:
  response_parser(unsigned& status, fields& headers, std::size_t max_header_bytes);

  /// The body bytes of the puts since the last call: one contiguous piece of the buffer that was put, which
  /// must be writable (pieces of several chunks are moved together over the framing between them).
  std::string_view take_body();

 private:
  void on_request_impl(beast::http::verb, beast::string_view, beast::string_view, int, beast::error_code&) override {}
  void on_response_impl(int code, beast::string_view reason, int version, beast::error_code& ec) override;
  void on_field_impl(beast::http::field, beast::string_view name, beast::string_view value,
                     beast::error_code& ec) override;
  void on_header_impl(beast::error_code& ec) override;
  void on_body_init_impl(const boost::optional<std::uint64_t>&, beast::error_code&) override {}
  std::size_t on_body_impl(beast::string_view body, beast::error_code& ec) override;
  void on_chunk_header_impl(std::uint64_t, beast::string_view, beast::error_code&) override {}
  std::size_t on_chunk_body_impl(std::uint64_t, beast::string_view body, beast::error_code& ec) override;
  void on_finish_impl(beast::error_code&) override {}

  unsigned& status_;
  fields& headers_;
  std::size_t header_budget_;
  bool in_header_ = true;
  char* body_ = nullptr;
  std::size_t body_size_ = 0;
};

}  // namespace infernex::http
