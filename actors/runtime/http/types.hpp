#pragma once

#include <chrono>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include <boost/asio/awaitable.hpp>
#include <boost/asio/io_context.hpp>
#include <boost/asio/use_awaitable.hpp>

#include "messages/result.hpp"

namespace infernex::http {

namespace asio = boost::asio;

/// Concrete, so that a coroutine's continuation costs no type erasure. One io_context a thread.
using executor = asio::io_context::executor_type;
template <class T = void>
using task = asio::awaitable<T, executor>;
inline constexpr asio::use_awaitable_t<executor> use_task{};

struct field {
  std::string name;
  std::string value;
};
using fields = std::vector<field>;

/// The first field of this name (case-insensitive), or empty.
std::string_view find(const fields& in, std::string_view name);

/// Where requests go.
struct origin {
  std::string host;
  std::uint16_t port = 80;
  friend auto operator<=>(const origin&, const origin&) = default;
};

/// `http://host[:port][/base]`. Only http: TLS ends before us. Errors: invalid_request.
struct url {
  origin at;
  /// Path and query, starting with '/', or empty.
  std::string path;
};
result<url> parse_url(std::string_view text);

}  // namespace infernex::http
