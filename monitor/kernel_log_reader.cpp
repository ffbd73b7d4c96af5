#include <fcntl.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <cstring>

#include "monitor/host_reader.hpp"
#include "monitor/kernel_log.hpp"
#include "monitor/text_scan.hpp"

namespace infernex::monitor {

namespace {

constexpr int max_records_a_round = 4096;

class kernel_log_reader final : public reader {
 public:
  explicit kernel_log_reader(std::string device) : device_(std::move(device)) {}
  ~kernel_log_reader() override {
    if (file_ >= 0) ::close(file_);
  }
  fb::HwSource kind() const override { return fb::HwSource::KernelLog; }
  std::string name() const override { return "kernel-log"; }

  /// Each read of /dev/kmsg gives one record; EPIPE says that some were overwritten before they were read.
  reading_round read() override {
    reading_round found;
    if (!is_open()) {
      found.problems.push_back(device_ + ": " + std::strerror(errno) + " (needs CAP_SYSLOG, and the device mounted)");
      return found;
    }
    std::array<char, 8192> record{};
    for (int i = 0; i < max_records_a_round; ++i) {
      const auto size = ::read(file_, record.data(), record.size());
      if (size < 0 && (errno == EPIPE || errno == EINTR)) continue;
      if (size <= 0) break;
      std::string_view text(record.data(), static_cast<std::size_t>(size));
      if (auto event = parse_kernel_line(next_line(text))) found.events.push_back(*std::move(event));
    }
    return found;
  }

 private:
  bool is_open() {
    if (file_ >= 0) return true;
    file_ = ::open(device_.c_str(), O_RDONLY | O_NONBLOCK | O_CLOEXEC);
    if (file_ < 0) return false;
    ::lseek(file_, 0, SEEK_END);
    return true;
  }

  std::string device_;
  int file_ = -1;
};

}  // namespace

std::shared_ptr<reader> make_kernel_log_reader(std::string device) {
  return std::make_shared<kernel_log_reader>(std::move(device));
}

}  // namespace infernex::monitor
