#include "actors/runtime/http/own_url.hpp"

#include <unistd.h>

namespace infernex::http {

std::string own_url(const std::string& address, std::uint16_t port) {
  auto host = address;
  if (host == "0.0.0.0" || host == "::") {
    char name[256] = "localhost";
    ::gethostname(name, sizeof name - 1);
    host = name;
  }
  return "http://" + host + ":" + std::to_string(port);
}

}  // namespace infernex::http
