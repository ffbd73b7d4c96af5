#pragma once

#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include <boost/json/value.hpp>

#include "actors/runtime/http/client.hpp"
#include "actors/runtime/http/server.hpp"
#include "actors/simulator/engine_loop.hpp"
#include "actors/simulator/fault_book.hpp"
#include "actors/simulator/kv_lease_book.hpp"
#include "actors/simulator/kv_link.hpp"
#include "actors/simulator/kv_transfer_params.hpp"

namespace infernex::simulator {

/// The waits of one request in a transfer; its client's leaving ends them all.
class transfer_call {
 public:
  explicit transfer_call(http::asio::io_context& context) : news_(context.get_executor()) {}
  transfer_call(const transfer_call&) = delete;
  transfer_call& operator=(const transfer_call&) = delete;

  void cancel();
  bool cancelled() const { return cancelled_; }
  http::cancel_source& calls() { return calls_; }

  /// Lets the time pass; false if the client left before.
  http::task<bool> pass_until(std::chrono::steady_clock::time_point when);

 private:
  friend class kv_transfer;
  http::cancel_source calls_;
  steady_timer news_;
  bool cancelled_ = false;
};

/// Who waits for word of a transfer, by its key. Two may wait under one key: a client can send one X-Request-Id twice.
class awaited_book {
 public:
  /// Tells the one who has waited longest without word: `come`, or (false) that it was given up. False: nobody waits.
  bool tell(std::string_view key, bool come);

 private:
  friend class awaited_entry;
  using entries = std::multimap<std::string, std::optional<bool>, std::less<>>;
  entries waiting_;
};

/// Somebody's wait, as long as its coroutine lives.
class awaited_entry {
 public:
  awaited_entry(awaited_book& in, std::string key)
      : in_(in), mine_(in_.waiting_.emplace(std::move(key), std::nullopt)) {}
  awaited_entry(const awaited_entry&) = delete;
  awaited_entry& operator=(const awaited_entry&) = delete;
  ~awaited_entry() { in_.waiting_.erase(mine_); }
  const std::optional<bool>& come() const { return mine_->second; }

 private:
  awaited_book& in_;
  awaited_book::entries::iterator mine_;
};

/// One engine's part in transfers: what it holds for others, who waits for what. kv_give and kv_take are the two sides'
/// courses over it. On the engine's I/O thread.
class kv_transfer {
 public:
  using clock = std::chrono::steady_clock;

  /// `here`: the second listener, once it is bound.
  kv_transfer(http::worker& on, const settings& engine, engine_loop& loop, fault_book& faults, kv_place here);

  const settings& engine() const { return engine_; }
  const kv_place& here() const { return here_; }
  void listens_on(std::uint16_t port) { here_.port = port; }
  engine_loop& loop() { return loop_; }
  fault_book& faults() { return faults_; }
  http::worker& on() { return on_; }
  kv_link& link() { return link_; }

  /// Waits for a change of anything here or in the engine's memory; false at the deadline, or if the client left.
  http::task<bool> wait(transfer_call& call, clock::time_point deadline);
  /// Something has changed: everybody looks again.
  void changed();

  /// A computed prompt, held by the engine under `held`, is there to be read; what the answer's kv_transfer_params say.
  boost::json::value offer(const kv_transfer_request& asked, const std::string& request_id, sequence_id held,
                           std::uint32_t prompt_tokens, token_id last_token);
  kv_lease_book& leases() { return leases_; }
  /// Ends a lease and frees its blocks; `read` for whoever waits for that.
  void end_lease(std::string_view key, bool read);

  /// Decode requests that wait for their KV to be pushed, and prefill requests that wait until it has been read.
  awaited_book& pushes() { return pushes_; }
  awaited_book& readers() { return readers_; }

  /// Decode requests that wait for memory or KV.
  std::uint32_t taking() const { return taking_; }
  void count_taking(int change);

  /// Lets go of the io_context, whose threads have ended.
  void end() { expiry_.reset(); }

 private:
  void watch_leases();

  http::worker& on_;
  const settings& engine_;
  engine_loop& loop_;
  fault_book& faults_;
  kv_place here_;
  kv_link link_;
  kv_lease_book leases_;
  std::uint64_t offers_ = 0;
  awaited_book pushes_;
  awaited_book readers_;
  std::vector<transfer_call*> waiting_;
  std::uint32_t taking_ = 0;
  std::optional<steady_timer> expiry_;
};

}  // namespace infernex::simulator
