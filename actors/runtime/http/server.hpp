#pragma once

#include <functional>
#include <memory>

#include "actors/runtime/http/types.hpp"

namespace infernex::http {

class worker;

/// A request whose body has been read whole (bounded by server_settings::max_body_bytes).
struct request {
  std::string method;
  /// As received, and the part before '?'.
  std::string target;
  std::string path;
  fields headers;
  std::string body;
  /// `address:port` of the client.
  std::string remote;
  /// When the first byte of the request was read.
  std::chrono::steady_clock::time_point received_at;
};

/// The way back to one client. Used on the worker's thread only, until the handler returns, one operation at a
/// time. Every operation
/// returns false once the client is gone or too slow; the handler then just returns. Views must live until the
/// operation returns. Build `extra` before the call: g++ 12 refuses a braced list inside a co_await expression
/// ("array used as initializer").
class responder {
 public:
  virtual ~responder() = default;
  /// A whole answer with Content-Length.
  virtual task<bool> send(unsigned status, std::string_view content_type, std::string_view body, fields extra = {}) = 0;
  /// Starts an answer of unknown length (chunked).
  virtual task<bool> start_stream(unsigned status, std::string_view content_type, fields extra = {}) = 0;
  /// Resumes when the kernel has taken the bytes: reading upstream only after it is the back-pressure.
  virtual task<bool> write(std::string_view bytes) = 0;
  virtual task<bool> end_stream() = 0;
  /// Breaks the connection without a proper end, so that the client sees a cut-off answer as such.
  virtual void abort() = 0;
  /// Whether a status line has been sent.
  virtual bool started() const = 0;
  virtual bool client_gone() const = 0;
  /// `gone` is called once, on this thread, when the client closes its connection before the answer's
  /// end. At most one at a time; an empty function unregisters. Called at once if it is gone already.
  virtual void on_client_gone(std::function<void()> gone) = 0;
};

/// Not a capturing coroutine lambda: a function that returns one. A handler that throws, or returns
/// without an answer, gives the client a 500 in OpenAI's shape, counted and logged.
using handler = std::function<task<void>(worker&, request&, responder&)>;

struct server_settings {
  /// Loopback unless configured. Port 0 takes a free one; see server::port().
  std::string address = "127.0.0.1";
  std::uint16_t port = 0;
  std::uint64_t max_body_bytes = 8ULL << 20;
  std::uint32_t max_header_bytes = 64 << 10;
  std::uint32_t max_connections = 16'384;
  /// First byte to whole request; idle between requests; one write.
  std::chrono::milliseconds read_timeout{30'000};
  std::chrono::milliseconds idle_timeout{75'000};
  std::chrono::milliseconds write_timeout{60'000};
};

struct client_settings {
  /// Idle connections kept per origin and worker, and for how long.
  std::uint32_t max_idle_per_origin = 128;
  std::chrono::milliseconds idle_timeout{30'000};
  std::uint32_t max_header_bytes = 64 << 10;
};

class client;

/// What a server has counted since it listens.
struct server_counts {
  std::uint64_t accepted = 0;
  /// Over max_connections.
  std::uint64_t turned_away = 0;
  std::uint64_t requests = 0;
  /// Answered by the server itself: bad HTTP, too large, too slow, turned away.
  std::uint64_t rejected = 0;
  /// Handlers that threw, or ended without an answer.
  std::uint64_t failures = 0;
};

/// One I/O thread: its io_context and its own upstream pool. Nothing here is shared with other threads.
class worker {
 public:
  virtual ~worker() = default;
  /// Of io_threads::at().
  virtual unsigned index() const = 0;
  virtual asio::io_context& context() = 0;
  virtual client& upstream() = 0;
  /// Runs a coroutine of ours on this thread; an exception that leaves it is logged. Thread-safe.
  virtual void spawn(task<void> work) = 0;
};

/// A fixed number of I/O threads. Coroutines that still run at the end are destroyed where they wait, by the
/// destructor: whatever they refer to has to live longer than the io_threads.
class io_threads {
 public:
  explicit io_threads(unsigned count, client_settings pool = {});
  /// Stops, joins, destroys what still waits.
  ~io_threads();
  unsigned size() const;
  worker& at(unsigned index);
  /// Ends and joins the threads. What is spawned or posted after it never runs.
  void stop();

 private:
  struct impl;
  std::unique_ptr<impl> impl_;
};

/// An HTTP/1.1 server that listens with SO_REUSEPORT on every worker. Errors that it answers itself (bad
/// HTTP, too large, too slow, too many connections) have OpenAI's shape.
class server {
 public:
  /// Errors: system_error (address in use, no permission).
  static result<std::unique_ptr<server>> listen(io_threads& threads, server_settings settings, handler handle);
  /// Like drain(0). Has to be destroyed before its io_threads, and not on one of them.
  ~server();

  std::uint16_t port() const;
  /// Requests being answered now; connections open now.
  std::size_t active_requests() const;
  std::size_t open_connections() const;
  server_counts counts() const;
  /// Stops accepting and closes idle connections; waits until the deadline for the others, then cancels
  /// them. True if none had to be cancelled. Blocks; not to be called from a worker.
  bool drain(std::chrono::milliseconds deadline);

 private:
  struct impl;
  explicit server(std::shared_ptr<impl> state);
  std::shared_ptr<impl> impl_;
};

/// `{"error":{"message":…,"type":…,"param":…,"code":…}}`, OpenAI's error shape. Type follows the status
/// (400 invalid_request_error, 404 not_found_error, 429 rate_limit_error, 5xx server_error …) unless given.
std::string openai_error(unsigned status, std::string_view message, std::string_view code = {},
                         std::string_view param = {}, std::string_view type = {});

}  // namespace infernex::http
