#include <pthread.h>

#include <algorithm>
#include <thread>

#include <boost/asio/co_spawn.hpp>
#include <boost/asio/executor_work_guard.hpp>

#include "actors/runtime/http/pool.hpp"
#include "actors/runtime/http/server.hpp"
#include "actors/runtime/log.hpp"

namespace infernex::http {

namespace {

void log_escaped(std::string_view what) {
  static log::limiter escaped;
  if (const auto repeated = escaped.admit())
    log::error("exception on an http thread", {{"problem", what}, {"repeated", repeated}});
}

void report(const std::exception_ptr& escaped) {
  if (!escaped) return;
  try {
    std::rethrow_exception(escaped);
  } catch (const std::exception& problem) {
    log_escaped(problem.what());
  } catch (...) {
    log_escaped("of an unknown type");
  }
}

class io_worker final : public worker {
 public:
  io_worker(unsigned index, const client_settings& pool)
      : index_(index),
        context_(1),  // one thread runs it: a continuation need not go through the shared queue
        guard_(asio::make_work_guard(context_)) {
    pool_ = std::make_unique<upstream_pool>(context_.get_executor(), pool);
    client_ = make_pooled_client(*pool_);
  }
  ~io_worker() override { pool_->close(); }

  unsigned index() const override { return index_; }
  asio::io_context& context() override { return context_; }
  client& upstream() override { return *client_; }
  void spawn(task<void> work) override { asio::co_spawn(context_.get_executor(), std::move(work), &report); }

  void start() {
    thread_ = std::thread([this] { run(); });
    ::pthread_setname_np(thread_.native_handle(), ("http-" + std::to_string(index_)).c_str());
  }
  void ask_to_stop() { context_.stop(); }
  void join() {
    if (thread_.joinable()) thread_.join();
  }

 private:
  void run() {
    while (!context_.stopped()) {
      try {
        context_.run();
      } catch (const std::exception& problem) {
        log_escaped(problem.what());
      } catch (...) {
        log_escaped("of an unknown type");
      }
    }
  }

  unsigned index_;
  // The context goes before the pool and the client: with it go the frames of all coroutines that still wait
  // on it, and those refer to both.
  std::unique_ptr<upstream_pool> pool_;
  std::unique_ptr<client> client_;
  asio::io_context context_;
  asio::executor_work_guard<executor> guard_;
  std::thread thread_;
};

}  // namespace

struct io_threads::impl {
  std::vector<std::unique_ptr<io_worker>> workers;
};

io_threads::io_threads(unsigned count, client_settings pool) : impl_(std::make_unique<impl>()) {
  for (unsigned i = 0; i < std::max(count, 1U); ++i) impl_->workers.push_back(std::make_unique<io_worker>(i, pool));
  for (auto& w : impl_->workers) w->start();
}

io_threads::~io_threads() { stop(); }

unsigned io_threads::size() const { return static_cast<unsigned>(impl_->workers.size()); }
worker& io_threads::at(unsigned index) { return *impl_->workers.at(index); }

void io_threads::stop() {
  for (auto& w : impl_->workers) w->ask_to_stop();
  for (auto& w : impl_->workers) w->join();
}

}  // namespace infernex::http
