#pragma once

#include <cstdint>
#include <string>

namespace infernex::http {

/// How others reach a server that listens at this address and port: by this machine's name where it listens at all of
/// its addresses.
std::string own_url(const std::string& address, std::uint16_t port);

}  // namespace infernex::http
