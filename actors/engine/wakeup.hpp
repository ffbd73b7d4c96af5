#pragma once

#include <sys/eventfd.h>
#include <unistd.h>

#include <cstdint>
#include <system_error>

namespace infernex::engine {

/// Wakes a thread that polls. Thread-safe.
class wakeup {
 public:
  wakeup() : fd_(::eventfd(0, EFD_NONBLOCK | EFD_CLOEXEC)) {
    if (fd_ < 0) throw std::system_error(errno, std::generic_category(), "eventfd");
  }
  ~wakeup() { ::close(fd_); }
  wakeup(const wakeup&) = delete;
  wakeup& operator=(const wakeup&) = delete;

  int fd() const { return fd_; }
  void wake() const {
    const std::uint64_t one = 1;
    [[maybe_unused]] const auto written = ::write(fd_, &one, sizeof one);  // full means awake already
  }
  void reset() const {
    std::uint64_t count = 0;
    [[maybe_unused]] const auto read = ::read(fd_, &count, sizeof count);
  }

 private:
  int fd_;
};

}  // namespace infernex::engine
