#pragma once

#include <memory>

#include "actors/runtime/http/types.hpp"

namespace infernex::http {

/// Lets a caller give up calls from outside (same thread): request() closes their connections, and whatever
/// waits on them resumes with errc::cancelled. It and its calls may end in any order.
class cancel_source {
 public:
  cancel_source() = default;
  cancel_source(const cancel_source&) = delete;
  cancel_source& operator=(const cancel_source&) = delete;
  ~cancel_source();
  void request();
  bool requested() const { return requested_; }

 private:
  friend struct exchange_impl;
  bool requested_ = false;
  std::vector<struct exchange_impl*> calls_;
};

struct outgoing {
  std::string_view method = "GET";
  /// Path and query.
  std::string_view target = "/";
  /// Host, Content-Length and Connection are added.
  fields headers;
  /// Sent as it is, not copied: it must live until the call returns.
  std::string_view body;
};

struct call_options {
  std::chrono::milliseconds connect_timeout{2'000};
  /// From the request sent to the response's head.
  std::chrono::milliseconds response_timeout{120'000};
  /// Between two pieces of the body.
  std::chrono::milliseconds idle_timeout{120'000};
  /// May be null.
  cancel_source* cancel = nullptr;
};

/// A response whose body is still to be read. Destroying it before the end closes the connection (which is
/// what tells an engine to stop); at the end the connection goes back to the pool. Not to be destroyed while a
/// coroutine waits in it.
class exchange {
 public:
  exchange(exchange&&) noexcept;
  exchange& operator=(exchange&&) noexcept;
  ~exchange();

  unsigned status() const;
  const fields& headers() const;
  /// The next piece of the body as it came off the socket; empty at the end. Valid until the next call.
  /// Errors: connection_lost, timed_out, cancelled.
  task<result<std::string_view>> read_some();
  /// The rest of the body. Errors: those above, too_large.
  task<result<std::string>> read_all(std::size_t max_bytes);

 private:
  friend class client;
  explicit exchange(std::unique_ptr<struct exchange_impl> state);
  std::unique_ptr<struct exchange_impl> impl_;
};

struct response {
  unsigned status = 0;
  fields headers;
  std::string body;
};

/// HTTP/1.1 client with a keep-alive pool, for one worker's thread. A pooled connection that turns out dead
/// before the first byte of the response is replaced once by a fresh one.
class client {
 public:
  virtual ~client() = default;
  /// Errors: unreachable (refused, no route, name unknown), connection_lost, timed_out, cancelled,
  /// malformed_input (not HTTP).
  /// The arguments must live until the call returns.
  virtual task<result<exchange>> open(const origin& to, const outgoing& what, const call_options& options) = 0;
  /// open() and read_all().
  task<result<response>> fetch(const origin& to, const outgoing& what, const call_options& options,
                               std::size_t max_bytes = 8 << 20);

 protected:
  static exchange make_exchange(std::unique_ptr<struct exchange_impl> state);
};

}  // namespace infernex::http
