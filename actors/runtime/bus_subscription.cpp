#include "actors/runtime/bus_subscription.hpp"

#include "actors/runtime/log.hpp"
#include "actors/runtime/metrics.hpp"

namespace infernex {

errc from_nats(natsStatus status) {
  switch (status) {
    case NATS_OK:
      return errc::none;
    case NATS_TIMEOUT:
      return errc::timed_out;
    case NATS_MAX_PAYLOAD:
      return errc::too_large;
    case NATS_NO_RESPONDERS:
      return errc::unreachable;
    default:
      return errc::bus_down;
  }
}

namespace {

errc errc_named(std::string_view text) {
  for (int i = 0; i <= static_cast<int>(errc::system_error); ++i)
    if (name(static_cast<errc>(i)) == text) return static_cast<errc>(i);
  return errc::system_error;
}

/// Gives the credit back, and the natsMsg, when the last view of a message is gone.
struct message_owner {
  natsMsg* message;
  std::shared_ptr<subscription::impl> from;
  message_owner(natsMsg* m, std::shared_ptr<subscription::impl> f) : message(m), from(std::move(f)) {}
  message_owner(const message_owner&) = delete;
  ~message_owner() {
    natsMsg_Destroy(message);
    from->alive.fetch_sub(1, std::memory_order_release);
  }
};

/// What an empty message stands for: NATS's own "no responders", or a refusal of ours.
errc refusal(natsMsg* message) {
  if (natsMsg_GetDataLength(message) != 0) return errc::none;
  if (natsMsg_IsNoResponders(message)) return errc::unreachable;
  const char* said = nullptr;
  if (natsMsgHeader_Get(message, error_header, &said) == NATS_OK && said) return errc_named(said);
  return errc::none;
}

chunk own(natsMsg* message, const std::shared_ptr<subscription::impl>& from) {
  auto owner = std::make_shared<message_owner>(message, from);
  const std::span<const std::uint8_t> bytes{reinterpret_cast<const std::uint8_t*>(natsMsg_GetData(message)),
                                            static_cast<std::size_t>(natsMsg_GetDataLength(message))};
  // nats.c puts the payload right behind subject and headers, wherever that falls; FlatBuffers reads
  // 64-bit scalars in place, so a misaligned payload is copied once (a few ns for the usual message).
  if (reinterpret_cast<std::uintptr_t>(bytes.data()) % 8 == 0) return {bytes, std::move(owner)};
  return chunk::copy_of(bytes, std::move(owner));
}

/// The closure of a C call-back: freed by the completion call-back, which NATS runs last.
using closure = std::shared_ptr<subscription::impl>;

void deliver(natsConnection*, natsSubscription*, natsMsg* message, void* context) {
  const auto& state = *static_cast<closure*>(context);
  state->delivering.store(std::this_thread::get_id());
  const char* reply = natsMsg_GetReply(message);
  if (state->ended.load() || state->alive.load(std::memory_order_acquire) >= state->credit) {
    if (!state->ended.load()) {
      state->dropped.fetch_add(1, std::memory_order_relaxed);
      if (state->dropped_total) state->dropped_total->Increment();
      if (reply && *reply) state->owner->refuse(reply, errc::overloaded);
      static log::limiter over_credit;
      if (auto n = over_credit.admit())
        log::warn("messages dropped: the subscription's credit is used up",
                  {{"subject", state->name}, {"credit", state->credit}, {"repeated", n}});
    }
    natsMsg_Destroy(message);
    return;
  }
  state->alive.fetch_add(1, std::memory_order_relaxed);
  const errc problem = refusal(message);
  std::string subject_name = natsMsg_GetSubject(message);
  std::string reply_subject = reply ? reply : "";
  state->handler({own(message, state), std::move(subject_name), std::move(reply_subject),
                  std::chrono::steady_clock::now(), problem});
}

void complete(void* context) {
  auto* held = static_cast<closure*>(context);
  {
    const std::lock_guard lock((*held)->guard);
    (*held)->completed = true;
    (*held)->handler = nullptr;  // what it captured may own the actor that owns the subscription
  }
  (*held)->completed_changed.notify_all();
  delete held;
}

}  // namespace

void retired_subscriptions::retire(natsSubscription* handle) {
  // A thread would have to stand still between two of its instructions for that long.
  constexpr std::chrono::seconds grace{10};
  std::deque<retired> due;
  {
    const std::lock_guard lock(guard_);
    const auto now = clock::now();
    waiting_.push_back({now, handle});
    while (!waiting_.empty() && (closed_ || now - waiting_.front().at >= grace)) {
      due.push_back(waiting_.front());
      waiting_.pop_front();
    }
  }
  for (const auto& one : due) natsSubscription_Destroy(one.handle);
}

void retired_subscriptions::connections_closed() {
  std::deque<retired> due;
  {
    const std::lock_guard lock(guard_);
    closed_ = true;
    due.swap(waiting_);
  }
  for (const auto& one : due) natsSubscription_Destroy(one.handle);
}

subscription& subscription::operator=(subscription&& other) noexcept {
  if (this != &other) {
    if (impl_) impl_->end();
    impl_ = std::move(other.impl_);
  }
  return *this;
}

subscription::~subscription() {
  if (impl_) impl_->end();
}

std::uint64_t subscription::dropped() const { return impl_ ? impl_->dropped.load() : 0; }

natsStatus subscription::impl::begin(const std::shared_ptr<impl>& state, natsConnection* connection,
                                     const std::string& queue_group) {
  auto* context = new closure(state);
  const auto status = queue_group.empty()
                          ? natsConnection_Subscribe(&state->handle, connection, state->name.c_str(), deliver, context)
                          : natsConnection_QueueSubscribe(&state->handle, connection, state->name.c_str(),
                                                          queue_group.c_str(), deliver, context);
  if (status != NATS_OK) {
    delete context;
    return status;
  }
  natsSubscription_SetOnCompleteCB(state->handle, complete, context);
  // The credit bounds what we hold; NATS's own limit bounds what waits for the call-back meanwhile.
  natsSubscription_SetPendingLimits(state->handle, 65'536, 64 << 20);
  return NATS_OK;
}

void subscription::impl::end() {
  if (ended.exchange(true)) return;
  natsSubscription_Unsubscribe(handle);
  if (delivering.load() == std::this_thread::get_id()) return;  // ended from its own call-back
  std::unique_lock lock(guard);
  completed_changed.wait_for(lock, std::chrono::seconds(5), [&] { return completed; });
}

}  // namespace infernex
