#include "actors/runtime/file_stamp.hpp"

#include <sys/stat.h>

namespace infernex::config {

std::optional<file_stamp> stamp_of(const std::string& file) {
  struct stat info {};
  if (::stat(file.c_str(), &info) != 0) return std::nullopt;
  return file_stamp{std::int64_t{info.st_mtim.tv_sec} * 1'000'000'000 + info.st_mtim.tv_nsec,
                    static_cast<std::uint64_t>(info.st_size), static_cast<std::uint64_t>(info.st_ino)};
}

}  // namespace infernex::config
