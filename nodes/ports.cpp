#include "nodes/ports.hpp"

#include <arpa/inet.h>
#include <netinet/in.h>
#include <sys/socket.h>
#include <unistd.h>

#include <stdexcept>

namespace infernex::nodes {

free_ports::free_ports(std::size_t count) {
  // All sockets stay open until the last port is known, so that no port comes twice.
  std::vector<int> open;
  for (std::size_t i = 0; i < count; ++i) {
    const int fd = ::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    if (fd < 0) break;
    open.push_back(fd);
    sockaddr_in address{};
    address.sin_family = AF_INET;
    address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    socklen_t size = sizeof address;
    if (::bind(fd, reinterpret_cast<sockaddr*>(&address), size) == 0 &&
        ::getsockname(fd, reinterpret_cast<sockaddr*>(&address), &size) == 0)
      ports_.push_back(ntohs(address.sin_port));
  }
  for (int fd : open) ::close(fd);
  if (ports_.size() != count) throw std::runtime_error("not enough free TCP ports");
}

std::uint16_t free_ports::take() {
  if (ports_.empty()) throw std::runtime_error("more ports asked for than were reserved");
  const auto port = ports_.back();
  ports_.pop_back();
  return port;
}

}  // namespace infernex::nodes
