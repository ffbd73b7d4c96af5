#pragma once

#include <mutex>
#include <utility>

#include <boost/asio/post.hpp>

#include "actors/runtime/http/types.hpp"

namespace infernex::gateway {

/// Where other threads put work for a worker; closed before the worker's context goes.
class door {
 public:
  explicit door(http::asio::io_context& context) : context_(&context) {}
  template <class Work>
  void post(Work work) {
    const std::lock_guard lock(guard_);
    if (context_) http::asio::post(*context_, std::move(work));
  }
  void close() {
    const std::lock_guard lock(guard_);
    context_ = nullptr;
  }

 private:
  std::mutex guard_;
  http::asio::io_context* context_;
};

}  // namespace infernex::gateway
