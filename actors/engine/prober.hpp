#pragma once

#include <functional>
#include <memory>
#include <string>

#include "actors/engine/probe_result.hpp"
#include "actors/engine/settings.hpp"

namespace infernex::http {
class io_threads;
}

namespace infernex::engine {

/// Asks one engine for its health, metrics and models, over and over, on an HTTP thread. `sink` is called
/// on that thread, once a round, and must not block. Rounds never overlap, and each has a deadline.
class prober {
 public:
  using sink = std::function<void(std::shared_ptr<const probe_result>)>;

  /// `with` must have been checked (discovery::find_mistakes).
  prober(std::shared_ptr<http::io_threads> threads, std::shared_ptr<const settings> with,
         const discovery::engine_descriptor& engine, sink deliver);
  /// No call of the sink begins after it, but one may be running.
  ~prober();
  prober(const prober&) = delete;
  prober& operator=(const prober&) = delete;

 private:
  struct loop;
  std::shared_ptr<http::io_threads> threads_;
  std::shared_ptr<loop> loop_;
};

}  // namespace infernex::engine
