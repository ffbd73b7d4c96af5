#pragma once

#include <cstdint>
#include <optional>
#include <string>

namespace infernex::config {

/// What tells one writing of a file from the next without reading it.
struct file_stamp {
  std::int64_t modified_ns = 0;
  std::uint64_t bytes = 0;
  std::uint64_t inode = 0;  // another file moved in its place, or a link that points elsewhere now
  friend bool operator==(const file_stamp&, const file_stamp&) = default;
};

/// Nothing where there is no such file.
std::optional<file_stamp> stamp_of(const std::string& file);

}  // namespace infernex::config
