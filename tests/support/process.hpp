#pragma once

#include <sys/types.h>

#include <chrono>
#include <string>
#include <vector>

namespace infernex::test {

/// A child process that ends with its owner (by its id only).
class process {
 public:
  /// Starts `arguments[0]` (looked up in PATH); stdout and stderr go to `log_file`, or nowhere if empty.
  explicit process(const std::vector<std::string>& arguments, const std::string& log_file = {});
  process(process&& other) noexcept;
  process& operator=(process&& other) noexcept;
  ~process();

  pid_t pid() const { return pid_; }
  void signal(int number) const;
  /// Waits for the end; the exit code, 128 + signal, or -1 if it still runs at the deadline.
  int wait(std::chrono::milliseconds limit);
  /// SIGTERM, then SIGKILL after the limit.
  void stop(std::chrono::milliseconds limit = std::chrono::seconds(5));

 private:
  pid_t pid_ = -1;
};

/// Whether a program of that name is in PATH.
bool in_path(const std::string& program);

}  // namespace infernex::test
