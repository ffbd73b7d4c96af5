#include "nodes/ports.hpp"

#include <arpa/inet.h>
#include <netinet/in.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include <cstddef>
#include <cstring>
#include <stdexcept>
#include <string>

namespace infernex::nodes {
namespace {

// Below those that Linux gives to outgoing connections (net.ipv4.ip_local_port_range), which come by the hundred while
// a stack starts and would take a port between the look at it and its use.
constexpr unsigned first_port = 16'000;
constexpr unsigned block_ports = 64;
constexpr unsigned blocks = 256;

/// Reserves a block for this process, against others that look for ports at the same time; until the process ends.
bool reserve(unsigned block) {
  const int fd = ::socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
  if (fd < 0) return false;
  sockaddr_un address{};
  address.sun_family = AF_UNIX;
  // In the abstract name space (a zero first): no file that could be left behind.
  const auto name = "infernex/ports/" + std::to_string(block);
  std::memcpy(address.sun_path + 1, name.data(), name.size());
  const auto size = static_cast<socklen_t>(offsetof(sockaddr_un, sun_path) + 1 + name.size());
  if (::bind(fd, reinterpret_cast<sockaddr*>(&address), size) == 0) return true;
  ::close(fd);
  return false;
}

bool is_free(std::uint16_t port) {
  const int fd = ::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
  if (fd < 0) return false;
  sockaddr_in address{};
  address.sin_family = AF_INET;
  address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  address.sin_port = htons(port);
  const bool bound = ::bind(fd, reinterpret_cast<sockaddr*>(&address), sizeof address) == 0;
  ::close(fd);
  return bound;
}

}  // namespace

free_ports::free_ports(std::size_t count) {
  const auto start = static_cast<unsigned>(::getpid()) % blocks;
  for (unsigned n = 0; n < blocks && ports_.size() < count; ++n) {
    const auto block = (start + n) % blocks;
    if (!reserve(block)) continue;
    for (unsigned i = 0; i < block_ports && ports_.size() < count; ++i) {
      const auto port = static_cast<std::uint16_t>(first_port + block * block_ports + i);
      if (is_free(port)) ports_.push_back(port);
    }
  }
  if (ports_.size() < count) throw std::runtime_error("not enough free TCP ports");
}

std::uint16_t free_ports::take() {
  if (ports_.empty()) throw std::runtime_error("more ports asked for than were reserved");
  const auto port = ports_.back();
  ports_.pop_back();
  return port;
}

}  // namespace infernex::nodes
