#pragma once

#include <netinet/in.h>
#include <sys/socket.h>
#include <unistd.h>

#include <atomic>
#include <chrono>
#include <functional>
#include <future>
#include <memory>
#include <mutex>
#include <stdexcept>
#include <string>
#include <string_view>
#include <thread>
#include <vector>

#include "actors/runtime/http/client.hpp"
#include "actors/runtime/http/server.hpp"

namespace infernex::test {

using namespace std::chrono_literals;

/// A blocking TCP socket with a time-out of 10 s on everything.
class raw_socket {
 public:
  explicit raw_socket(int fd) : fd_(fd) {
    const timeval limit{10, 0};
    ::setsockopt(fd_, SOL_SOCKET, SO_RCVTIMEO, &limit, sizeof limit);
    ::setsockopt(fd_, SOL_SOCKET, SO_SNDTIMEO, &limit, sizeof limit);
  }
  raw_socket(raw_socket&& other) noexcept : fd_(std::exchange(other.fd_, -1)), rest_(std::move(other.rest_)) {}
  raw_socket& operator=(raw_socket&&) = delete;
  ~raw_socket() { close(); }

  static raw_socket connect(std::uint16_t port, int receive_buffer = 0) {
    const int fd = ::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    if (receive_buffer) ::setsockopt(fd, SOL_SOCKET, SO_RCVBUF, &receive_buffer, sizeof receive_buffer);
    sockaddr_in to{};
    to.sin_family = AF_INET;
    to.sin_port = htons(port);
    to.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    if (::connect(fd, reinterpret_cast<sockaddr*>(&to), sizeof to) != 0) {
      ::close(fd);
      throw std::runtime_error("cannot connect");
    }
    return raw_socket(fd);
  }

  int fd() const { return fd_; }
  void close() {
    if (fd_ >= 0) ::close(std::exchange(fd_, -1));
  }
  void finish_sending() { ::shutdown(fd_, SHUT_WR); }
  /// Closes with a reset.
  void reset() {
    const linger now{1, 0};
    ::setsockopt(fd_, SOL_SOCKET, SO_LINGER, &now, sizeof now);
    close();
  }
  bool send(std::string_view bytes) {
    while (!bytes.empty()) {
      const auto sent = ::send(fd_, bytes.data(), bytes.size(), MSG_NOSIGNAL);
      if (sent <= 0) return false;
      bytes.remove_prefix(static_cast<std::size_t>(sent));
    }
    return true;
  }
  /// What one read gives; empty at the end.
  std::string read_some() {
    if (!rest_.empty()) return std::exchange(rest_, {});
    std::string bytes(64 << 10, '\0');
    const auto count = ::recv(fd_, bytes.data(), bytes.size(), 0);
    bytes.resize(count > 0 ? static_cast<std::size_t>(count) : 0);
    return bytes;
  }
  /// Up to and including `mark`, or all there is until the end.
  std::string read_until(std::string_view mark) {
    std::string all;
    for (;;) {
      const auto found = all.find(mark);
      if (found != std::string::npos) {
        rest_ = all.substr(found + mark.size());
        return all.substr(0, found + mark.size());
      }
      const auto more = read_some();
      if (more.empty()) return all;
      all += more;
    }
  }
  std::string read_to_end() {
    std::string all;
    for (auto more = read_some(); !more.empty(); more = read_some()) all += more;
    return all;
  }
  /// A response with Content-Length: head and body.
  std::string read_response() {
    std::string all = read_until("\r\n\r\n");
    const auto at = all.find("Content-Length: ");
    if (at == std::string::npos) return all;
    const std::size_t wanted = all.size() + std::stoul(all.substr(at + 16));
    while (all.size() < wanted) {
      const auto more = read_some();
      if (more.empty()) break;
      all += more;
    }
    rest_ = all.substr(std::min(wanted, all.size()));
    all.resize(std::min(wanted, all.size()));
    return all;
  }

 private:
  int fd_;
  std::string rest_;
};

/// A server that is not HTTP by itself: runs `script` for each connection, numbered from 0, on a thread.
class scripted_peer {
 public:
  using script = std::function<void(raw_socket&, unsigned)>;
  explicit scripted_peer(script run) : run_(std::move(run)) {
    listener_ = ::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    sockaddr_in at{};
    at.sin_family = AF_INET;
    at.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    socklen_t size = sizeof at;
    if (::bind(listener_, reinterpret_cast<sockaddr*>(&at), size) != 0 || ::listen(listener_, 16) != 0 ||
        ::getsockname(listener_, reinterpret_cast<sockaddr*>(&at), &size) != 0)
      throw std::runtime_error("cannot listen");
    port_ = ntohs(at.sin_port);
    accepting_ = std::thread([this] { accept_all(); });
  }
  ~scripted_peer() {
    ::shutdown(listener_, SHUT_RDWR);
    accepting_.join();
    for (auto& t : serving_) t.join();
    ::close(listener_);
  }
  http::origin at() const { return {"127.0.0.1", port_}; }
  unsigned connections() const { return accepted_; }

 private:
  void accept_all() {
    for (;;) {
      const int fd = ::accept4(listener_, nullptr, nullptr, SOCK_CLOEXEC);
      if (fd < 0) return;
      serving_.emplace_back([this, fd, number = accepted_.fetch_add(1)] {
        raw_socket socket(fd);
        run_(socket, number);
      });
    }
  }

  script run_;
  int listener_ = -1;
  std::uint16_t port_ = 0;
  std::atomic<unsigned> accepted_{0};
  std::thread accepting_;
  std::vector<std::thread> serving_;
};

template <class T>
http::task<void> deliver(http::task<T> work, std::shared_ptr<std::promise<T>> into) {
  into->set_value(co_await std::move(work));
}

/// Runs a coroutine on a worker and waits for its result.
template <class T>
T run(http::worker& on, http::task<T> work) {
  auto promise = std::make_shared<std::promise<T>>();
  auto future = promise->get_future();
  on.spawn(deliver(std::move(work), promise));
  if (future.wait_for(20s) != std::future_status::ready) throw std::runtime_error("no result within 20 s");
  return future.get();
}

/// io_threads and a server with one handler, in the right order of destruction.
struct http_fixture {
  explicit http_fixture(http::handler handle, http::server_settings settings = {}, unsigned workers = 1)
      : threads(workers) {
    auto listening = http::server::listen(threads, std::move(settings), std::move(handle));
    if (!listening) throw std::runtime_error(render(listening.failure()));
    server = *std::move(listening);
  }
  raw_socket connect(int receive_buffer = 0) { return raw_socket::connect(server->port(), receive_buffer); }

  http::io_threads threads;
  std::unique_ptr<http::server> server;
};

/// Answers with the request's method, path and body.
inline http::task<void> echo(http::worker&, http::request& in, http::responder& out) {
  const std::string body = in.method + " " + in.path + " " + in.body;
  co_await out.send(200, "text/plain", body);
}

}  // namespace infernex::test
