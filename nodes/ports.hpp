#pragma once

#include <cstdint>
#include <vector>

namespace infernex::nodes {

/// TCP ports of 127.0.0.1 that were free a moment ago, each given out once, and to no other process that looks for some by
/// this class as long as this one lives. Throws std::runtime_error if there are not enough.
class free_ports {
 public:
  explicit free_ports(std::size_t count);
  std::uint16_t take();

 private:
  std::vector<std::uint16_t> ports_;
};

}  // namespace infernex::nodes
