#pragma once

#include <memory>
#include <optional>
#include <string>
#include <vector>

#include <boost/asio/ip/basic_resolver.hpp>

#include "actors/runtime/http/io.hpp"
#include "actors/runtime/http/read_buffer.hpp"
#include "messages/result.hpp"

namespace infernex::http {

/// One connection to an upstream: a socket with one deadline. close() (also by the deadline) ends whatever waits
/// on it. Internal to this folder.
class upstream : public std::enable_shared_from_this<upstream> {
 public:
  explicit upstream(executor on) : on_(on), socket_(on), timer_(on) {}

  /// Resolves and connects, to the first address that accepts.
  task<error> connect(const origin& to, std::chrono::milliseconds limit);
  /// Error: connection_lost.
  task<error> write(std::string_view head, std::string_view body);
  /// Reads once, into buffer(). False at the peer's end or an error; see expired(), closed().
  task<bool> read();
  read_buffer& buffer() { return buffer_; }

  /// From now on the connection closes itself at that time. Moving it later costs nothing.
  void expect_by(steady::time_point deadline);
  void expect_nothing() { deadline_ = steady::time_point::max(); }
  bool expired() const { return expired_; }

  /// Whether an idle connection still stands: neither closed by the peer nor with bytes nobody asked for.
  bool usable();
  void close();
  bool closed() const { return closed_; }

 private:
  /// A lookup runs on Asio's resolver thread and cannot be interrupted, so it may outlive who asked.
  struct lookup {
    explicit lookup(executor on) : resolver(on), finished(on) {}
    asio::ip::basic_resolver<tcp, executor> resolver;
    timer finished;
    std::vector<tcp::endpoint> found;
    std::string problem;
    bool done = false;
  };

  task<error> resolve(const origin& to, std::vector<tcp::endpoint>& found);
  error gave_up(const origin& to, errc otherwise, std::string_view why) const;
  void arm();

  executor on_;
  tcp_socket socket_;
  timer timer_;
  read_buffer buffer_;
  std::size_t read_size_ = 16 << 10;
  std::shared_ptr<lookup> lookup_;
  steady::time_point deadline_ = steady::time_point::max();
  std::optional<steady::time_point> armed_for_;
  bool expired_ = false;
  bool closed_ = false;
};

}  // namespace infernex::http
