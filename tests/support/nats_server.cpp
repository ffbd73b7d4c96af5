#include "tests/support/nats_server.hpp"

#include <arpa/inet.h>
#include <netinet/in.h>
#include <signal.h>
#include <sys/socket.h>
#include <unistd.h>

#include <stdexcept>

#include "tests/support/wait.hpp"

namespace infernex::test {

namespace {

sockaddr_in loopback(std::uint16_t port) {
  sockaddr_in address{};
  address.sin_family = AF_INET;
  address.sin_port = htons(port);
  address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  return address;
}

bool accepts(std::uint16_t port) {
  const int fd = ::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
  auto address = loopback(port);
  const bool ok = ::connect(fd, reinterpret_cast<sockaddr*>(&address), sizeof address) == 0;
  ::close(fd);
  return ok;
}

}  // namespace

std::uint16_t free_port() {
  const int fd = ::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
  auto address = loopback(0);
  socklen_t size = sizeof address;
  if (::bind(fd, reinterpret_cast<sockaddr*>(&address), size) != 0 ||
      ::getsockname(fd, reinterpret_cast<sockaddr*>(&address), &size) != 0) {
    ::close(fd);
    throw std::runtime_error("no free port");
  }
  ::close(fd);
  return ntohs(address.sin_port);
}

nats_server::nats_server() : port_(free_port()), url_("nats://127.0.0.1:" + std::to_string(port_)) { restart(); }

void nats_server::kill() {
  if (!server_) return;
  server_->signal(SIGKILL);
  server_->wait(std::chrono::seconds(5));
  server_.reset();
}

void nats_server::freeze() { server_->signal(SIGSTOP); }

void nats_server::thaw() { server_->signal(SIGCONT); }

void nats_server::restart() {
  kill();
  server_.emplace(std::vector<std::string>{"nats-server", "-a", "127.0.0.1", "-p", std::to_string(port_)});
  if (!eventually([&] { return accepts(port_); })) throw std::runtime_error("nats-server does not start");
}

}  // namespace infernex::test
