#pragma once

#include <chrono>

#include <boost/asio/basic_waitable_timer.hpp>
#include <boost/asio/redirect_error.hpp>

#include "actors/runtime/http/types.hpp"

namespace infernex::http {

/// A timer on a worker's own context.
using worker_timer =
    asio::basic_waitable_timer<std::chrono::steady_clock, asio::wait_traits<std::chrono::steady_clock>, executor>;

/// Lets a coroutine wait for an event of its own thread, with a deadline. The coroutine hangs on a timer of
/// its io_context and on nothing else, so that it ends with that context whatever the event's source does.
class waiter {
 public:
  enum class outcome : std::uint8_t { notified, cancelled, timed_out };

  explicit waiter(asio::io_context& context) : timer_(context.get_executor()) {}

  void notify() {
    notified_ = true;
    timer_.cancel();
  }
  /// From now on nothing is waited for any more.
  void cancel() {
    cancelled_ = true;
    timer_.cancel();
  }

  task<outcome> wait(std::chrono::steady_clock::time_point deadline) {
    notified_ = false;
    while (!notified_ && !cancelled_) {
      if (std::chrono::steady_clock::now() >= deadline) co_return outcome::timed_out;
      timer_.expires_at(deadline);
      boost::system::error_code woken;
      co_await timer_.async_wait(asio::redirect_error(use_task, woken));
    }
    co_return cancelled_ ? outcome::cancelled : outcome::notified;
  }

 private:
  worker_timer timer_;
  bool notified_ = false;
  bool cancelled_ = false;
};

}  // namespace infernex::http
