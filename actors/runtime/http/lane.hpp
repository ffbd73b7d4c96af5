#pragma once

#include <atomic>
#include <memory>
#include <unordered_set>

#include "actors/runtime/http/io.hpp"
#include "actors/runtime/http/server.hpp"

namespace infernex::http {

class connection;

/// One worker's part of a server: its listening socket and its connections. Everything is used on the worker's
/// thread only, except the atomics, which others read. Internal to this folder.
struct lane {
  lane(worker& its_worker, server_settings its_settings, handler its_handler)
      : on(its_worker),
        settings(std::move(its_settings)),
        handle(std::move(its_handler)),
        acceptor(its_worker.context().get_executor()) {}

  worker& on;
  const server_settings settings;
  const handler handle;
  tcp_acceptor acceptor;
  /// Those alive; each enters and leaves by itself.
  std::unordered_set<connection*> connections;
  /// Set once, by drain.
  bool draining = false;
  /// Connections over the limit that are being told so.
  unsigned turned_away_now = 0;

  std::atomic<std::size_t> open{0};
  /// Between the first byte of a request and the end of its answer.
  std::atomic<std::size_t> busy{0};
  /// In their handler.
  std::atomic<std::size_t> active{0};
  std::atomic<std::uint64_t> requests{0};
  std::atomic<std::uint64_t> accepted{0};
  std::atomic<std::uint64_t> turned_away{0};
  std::atomic<std::uint64_t> rejected{0};
  std::atomic<std::uint64_t> failures{0};
};

/// Keeps a count up while it lives, also when a coroutine's frame is destroyed half-way.
class counted {
 public:
  explicit counted(std::atomic<std::size_t>& count) : count_(&count) { count_->fetch_add(1); }
  counted(const counted&) = delete;
  counted& operator=(const counted&) = delete;
  ~counted() { count_->fetch_sub(1); }

 private:
  std::atomic<std::size_t>* count_;
};

}  // namespace infernex::http
