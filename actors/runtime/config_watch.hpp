#pragma once

#include <chrono>
#include <condition_variable>
#include <functional>
#include <mutex>
#include <optional>
#include <string>
#include <thread>
#include <vector>

#include "actors/runtime/file_stamp.hpp"
#include "actors/runtime/metrics.hpp"

namespace infernex {

/// Follows a configuration file on a thread of its own: looks once an interval whether it has changed, has it read
/// anew if so, and tells log and metrics what came of it (`infernex_<part>_config_reloads_total{result}`).
class config_watch {
 public:
  struct outcome {
    /// Why the new content is not used, one line each; none: it is in use from now on.
    std::vector<std::string> problems;
    /// What the log should say besides.
    std::vector<std::string> remarks;
  };

  struct settings {
    /// Names the metrics: `router`, `gateway`.
    std::string part;
    std::string file;
    /// Of the content in use, and what the log should say of it.
    std::optional<config::file_stamp> read;
    std::vector<std::string> remarks;
    std::chrono::milliseconds interval{1'000};
  };

  /// `reload` runs on the thread.
  config_watch(metrics_registry& metrics, settings how, std::function<outcome()> reload);
  config_watch(const config_watch&) = delete;
  ~config_watch();

 private:
  void run(const std::stop_token& ending);
  void reload();

  settings how_;
  std::function<outcome()> reload_;
  prometheus::Counter& applied_;
  prometheus::Counter& refused_;
  std::mutex guard_;
  std::condition_variable_any wake_;
  std::jthread thread_;
};

}  // namespace infernex
