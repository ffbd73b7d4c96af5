#include "actors/simulator/kv_transfer.hpp"

#include <algorithm>
#include <utility>

#include <boost/asio/redirect_error.hpp>

namespace infernex::simulator {

bool awaited_book::tell(std::string_view key, bool come) {
  // Those of one key are in the order in which they came.
  const auto [first, last] = waiting_.equal_range(key);
  const auto next = std::find_if(first, last, [](const auto& entry) { return !entry.second; });
  if (next == last) return false;
  next->second = come;
  return true;
}

void transfer_call::cancel() {
  if (std::exchange(cancelled_, true)) return;
  calls_.request();
  news_.cancel();
}

http::task<bool> transfer_call::pass_until(std::chrono::steady_clock::time_point when) {
  while (!cancelled_ && std::chrono::steady_clock::now() < when) {
    news_.expires_at(when);
    boost::system::error_code woken;
    co_await news_.async_wait(http::asio::redirect_error(http::use_task, woken));
  }
  co_return !cancelled_;
}

kv_transfer::kv_transfer(http::worker& on, const settings& engine, engine_loop& loop, fault_book& faults, kv_place here)
    : on_(on),
      engine_(engine),
      loop_(loop),
      faults_(faults),
      here_(std::move(here)),
      link_(engine.kv_transfer, engine.speed),
      expiry_(std::in_place, on.context().get_executor()) {
  loop_.on_room([this] { changed(); });
}

namespace {

/// Among those who wait, as long as it lives.
class waiting_place {
 public:
  waiting_place(std::vector<transfer_call*>& in, transfer_call& call) : in_(in), call_(call) { in_.push_back(&call); }
  waiting_place(const waiting_place&) = delete;
  waiting_place& operator=(const waiting_place&) = delete;
  ~waiting_place() { std::erase(in_, &call_); }

 private:
  std::vector<transfer_call*>& in_;
  transfer_call& call_;
};

}  // namespace

http::task<bool> kv_transfer::wait(transfer_call& call, clock::time_point deadline) {
  if (call.cancelled_ || clock::now() >= deadline) co_return false;
  const waiting_place place(waiting_, call);
  call.news_.expires_at(deadline);
  boost::system::error_code woken;
  co_await call.news_.async_wait(http::asio::redirect_error(http::use_task, woken));
  co_return woken && !call.cancelled_;
}

void kv_transfer::changed() {
  for (auto* call : waiting_) call->news_.cancel();
}

boost::json::value kv_transfer::offer(const kv_transfer_request& asked, const std::string& request_id, sequence_id held,
                                      std::uint32_t prompt_tokens, token_id last_token) {
  const auto* hold = loop_.held(held);
  if (!hold) return nullptr;
  if (hold->blocks.empty() && !asked.awaited) {
    loop_.release(held);
    return nullptr;
  }
  // As vLLM makes its ids unique: a request may come twice under one X-Request-Id.
  const kv_offer made{request_id + "-" + std::to_string(++offers_), hold->blocks, engine_.block_size, prompt_tokens,
                      last_token};
  auto params = offered_params(engine_.kv_transfer.protocol, here_, made);
  kv_lease_book::lease fresh{held, made.blocks, clock::now() + engine_.kv_transfer.lease};
  auto replaced = leases_.offer(asked.key.empty() ? made.request_id : asked.key, std::move(fresh));
  if (replaced) loop_.release(replaced->held);
  watch_leases();
  changed();
  return params;
}

void kv_transfer::end_lease(std::string_view key, bool read) {
  const auto ended = leases_.end(key);
  if (!ended) return;
  readers_.tell(key, read);
  loop_.release(ended->held);
  changed();
}

void kv_transfer::watch_leases() {
  const auto next = leases_.next_end();
  if (!expiry_ || !next || expiry_->expiry() == *next) return;
  expiry_->expires_at(*next);
  expiry_->async_wait([this](const boost::system::error_code& failed) {
    if (failed) return;
    for (const auto& lease : leases_.expire(clock::now())) loop_.release(lease.held);
    changed();
    watch_leases();
  });
}

void kv_transfer::count_taking(int change) {
  taking_ = static_cast<std::uint32_t>(static_cast<int>(taking_) + change);
  loop_.waiting_for_kv(taking_);
}

}  // namespace infernex::simulator
