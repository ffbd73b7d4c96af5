#pragma once

#include <chrono>
#include <cstdint>
#include <functional>
#include <memory>
#include <string>

#include "actors/discovery/engine_descriptor.hpp"
#include "actors/engine/token_source.hpp"

namespace infernex::http {
class io_threads;
}

namespace infernex::engine {

/// What one question of a parity probe led to.
struct parity_answer {
  /// Of the probe that asked; an answer to an earlier one is out of date.
  std::uint64_t probe = 0;
  /// 0: no HTTP answer, and `body` says why.
  unsigned status = 0;
  std::string body;
};

/// Puts a parity probe's questions to the engine, one at a time, on the HTTP thread, where `sink` is called with each
/// answer. What is under way when it ends is given up.
class parity_caller {
 public:
  using sink = std::function<void(std::shared_ptr<const parity_answer>)>;

  /// Precondition: the engine's url can be parsed.
  parity_caller(std::shared_ptr<http::io_threads> threads, const discovery::engine_descriptor& engine, sink deliver);
  ~parity_caller();
  parity_caller(const parity_caller&) = delete;
  parity_caller& operator=(const parity_caller&) = delete;

  void ask(std::uint64_t probe, http_call question, std::chrono::milliseconds timeout);

 private:
  struct line;
  std::shared_ptr<http::io_threads> threads_;
  std::shared_ptr<line> line_;
};

}  // namespace infernex::engine
