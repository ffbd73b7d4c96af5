#pragma once

#include <sys/types.h>

#include <chrono>
#include <optional>
#include <string>
#include <vector>

#include "actors/runtime/restart_policy.hpp"

namespace infernex::nodes {

/// One process that `infernex up` keeps running. Driven from outside: nothing here waits.
class child {
 public:
  using point = restart_policy::point;
  child(std::string name, std::vector<std::string> command, restart_limits limits)
      : name_(std::move(name)), command_(std::move(command)), restarts_(limits) {}

  const std::string& name() const { return name_; }
  std::optional<pid_t> pid() const { return pid_; }
  /// Given up: it died too often.
  bool failed() const { return failed_; }

  /// Starts it if it is due.
  void start_if_due(point now);
  /// When it is next due, if it waits for that.
  std::optional<point> due() const { return due_; }
  /// Notices its end: true if it has ended since. `stopping`: it is not to start again.
  bool reap(point now, bool stopping);
  void signal(int number) const;

 private:
  std::string name_;
  std::vector<std::string> command_;
  restart_policy restarts_;
  std::optional<pid_t> pid_;
  std::optional<point> due_ = point::min();
  bool failed_ = false;
};

}  // namespace infernex::nodes
