#include "actors/runtime/bus.hpp"

#include <atomic>
#include <condition_variable>
#include <mutex>
#include <thread>
#include <unordered_map>
#include <vector>

#include <nats/nats.h>

#include "actors/runtime/bus_subscription.hpp"
#include "actors/runtime/log.hpp"
#include "actors/runtime/metrics.hpp"

namespace infernex {

using steady = std::chrono::steady_clock;

struct bus::impl {
  bus* self = nullptr;
  bus_settings settings;
  subjects names;
  metrics_registry& metrics;
  natsConnection* connections[2] = {nullptr, nullptr};
  std::atomic<bool> closing{false};

  std::mutex guard;  // everything below
  std::condition_variable changed;
  bool up[2] = {false, false};
  int closed = 0;
  std::vector<std::weak_ptr<std::function<void(bool)>>> watchers;
  std::vector<std::weak_ptr<subscription::impl>> subscriptions;
  struct pending {
    steady::time_point deadline;
    raw_listener each;
  };
  std::unordered_map<std::uint64_t, pending> requests;
  std::uint64_t next_request = 1;
  bool stop_deadlines = false;
  /// When the deadline thread looks again by itself; min() while it is looking.
  steady::time_point next_wake = steady::time_point::min();

  std::shared_ptr<retired_subscriptions> retired = std::make_shared<retired_subscriptions>();
  std::string inbox_prefix;
  subscription replies;
  std::thread deadlines;

  prometheus::Counter& bad_messages;
  prometheus::Counter& reconnects;
  prometheus::Gauge& connected_gauge;

  impl(bus_settings s, metrics_registry& m)
      : settings(std::move(s)),
        names(settings.prefix),
        metrics(m),
        bad_messages(m.counter("infernex_bus_bad_messages_total", "Messages refused by verification")),
        reconnects(m.counter("infernex_bus_reconnects_total", "Reconnects of either NATS connection")),
        connected_gauge(m.gauge("infernex_bus_connected", "1 while both NATS connections are up")) {}

  natsConnection* connection(lane via) { return connections[static_cast<int>(via)]; }

  // Call-backs of NATS; the context is this.
  static void on_disconnected(natsConnection* which, void* context);
  static void on_reconnected(natsConnection* which, void* context);
  static void on_closed(natsConnection* which, void* context);
  static void on_error(natsConnection*, natsSubscription*, natsStatus problem, void*);

  void set_up(natsConnection* which, bool is_up) {
    std::vector<std::shared_ptr<std::function<void(bool)>>> to_call;
    bool both = false;
    {
      const std::lock_guard lock(guard);
      for (int i = 0; i < 2; ++i)
        if (connections[i] == which) up[i] = is_up;
      both = up[0] && up[1];
      if (closing || (is_up && !both)) return;
      for (const auto& w : watchers)
        if (auto held = w.lock()) to_call.push_back(std::move(held));
    }
    connected_gauge.Set(both ? 1 : 0);
    for (const auto& call : to_call) (*call)(both);
  }

  result<natsConnection*> open(lane via);
  void run_deadlines();
  raw_listener take(std::uint64_t id);
  void keep(std::uint64_t id, std::chrono::milliseconds timeout, raw_listener each);
  void on_reply(inbound_bytes&& in);
};

void bus::impl::on_disconnected(natsConnection* which, void* context) {
  auto* state = static_cast<impl*>(context);
  if (!state->closing) log::warn("bus connection lost", {{"url", state->settings.url}});
  state->set_up(which, false);
}
void bus::impl::on_reconnected(natsConnection* which, void* context) {
  auto* state = static_cast<impl*>(context);
  log::info("bus connection is back", {{"url", state->settings.url}});
  state->reconnects.Increment();
  state->set_up(which, true);
}
void bus::impl::on_closed(natsConnection*, void* context) {
  auto* state = static_cast<impl*>(context);
  if (!state->closing) log::error("bus connection closed for good", {{"url", state->settings.url}});
  const std::lock_guard lock(state->guard);
  ++state->closed;
  state->changed.notify_all();
}
void bus::impl::on_error(natsConnection*, natsSubscription*, natsStatus problem, void*) {
  static log::limiter repeated;
  if (auto n = repeated.admit()) log::warn("NATS reports", {{"problem", natsStatus_GetText(problem)}, {"repeated", n}});
}

result<natsConnection*> bus::impl::open(lane via) {
  natsOptions* options = nullptr;
  if (natsOptions_Create(&options) != NATS_OK) return error{errc::system_error, "nats options"};
  const auto label = settings.client_name + (via == lane::rpc ? "/rpc" : "/stream");
  natsOptions_SetURL(options, settings.url.c_str());
  natsOptions_SetName(options, label.c_str());
  natsOptions_SetSendAsap(options, via == lane::rpc);
  natsOptions_SetAllowReconnect(options, true);
  natsOptions_SetMaxReconnect(options, -1);
  natsOptions_SetReconnectWait(options, settings.reconnect_wait.count());
  natsOptions_SetReconnectJitter(options, 50, 50);
  natsOptions_SetPingInterval(options, 2'000);
  natsOptions_SetMaxPingsOut(options, 2);
  natsOptions_SetTimeout(options, 1'000);
  // Without it a server that has stopped reading blocks every publisher for ever, under the very lock that the
  // ping timer needs to notice; with it the connection is given up and goes into reconnect.
  natsOptions_SetWriteDeadline(options, 2'000);
  natsOptions_SetDisconnectedCB(options, on_disconnected, this);
  natsOptions_SetReconnectedCB(options, on_reconnected, this);
  natsOptions_SetClosedCB(options, on_closed, this);
  natsOptions_SetErrorHandler(options, on_error, nullptr);
  natsConnection* made = nullptr;
  const auto deadline = steady::now() + settings.connect_deadline;
  natsStatus status;
  while ((status = natsConnection_Connect(&made, options)) != NATS_OK && steady::now() < deadline)
    std::this_thread::sleep_for(std::chrono::milliseconds(50));
  natsOptions_Destroy(options);
  if (status != NATS_OK) return error{errc::bus_down, settings.url + ": " + natsStatus_GetText(status)};
  return made;
}

bus::raw_listener bus::impl::take(std::uint64_t id) {
  const std::lock_guard lock(guard);
  auto found = requests.find(id);
  if (found == requests.end()) return {};
  auto each = std::move(found->second.each);
  requests.erase(found);
  return each;
}

/// More is to come for a request that was taken.
void bus::impl::keep(std::uint64_t id, std::chrono::milliseconds timeout, raw_listener each) {
  bool sooner = false;
  {
    const std::lock_guard lock(guard);
    if (!closing) {
      const auto deadline = steady::now() + timeout;
      sooner = deadline < next_wake;
      requests.emplace(id, pending{deadline, std::move(each)});
      each = {};
    }
  }
  if (each) each(errc::bus_down);  // NOLINT(bugprone-use-after-move): emptied where it was moved
  if (sooner) changed.notify_all();
}

void bus::impl::on_reply(inbound_bytes&& in) {
  const auto dot = in.subject.rfind('.');
  const auto id = std::strtoull(in.subject.c_str() + dot + 1, nullptr, 10);
  auto each = take(id);
  if (!each) return;  // answered too late
  if (in.problem != errc::none) {
    each(in.problem);
    return;
  }
  // NATS calls one subscription's handler for one message at a time: the next answer cannot come before it is kept.
  const auto more = each(std::move(in));
  if (more.count() > 0) keep(id, more, std::move(each));
}

void bus::impl::run_deadlines() {
  std::unique_lock lock(guard);
  while (!stop_deadlines) {
    auto next = steady::now() + std::chrono::seconds(60);
    std::vector<raw_listener> late;
    for (auto it = requests.begin(); it != requests.end();) {
      if (it->second.deadline <= steady::now()) {
        late.push_back(std::move(it->second.each));
        it = requests.erase(it);
      } else {
        next = std::min(next, it->second.deadline);
        ++it;
      }
    }
    if (!late.empty()) {
      lock.unlock();
      for (auto& each : late) each(errc::timed_out);
      lock.lock();
      continue;
    }
    next_wake = next;
    changed.wait_until(lock, next);
    next_wake = steady::time_point::min();
  }
}

bus::bus(std::unique_ptr<impl> state) : impl_(std::move(state)) { impl_->self = this; }

result<std::unique_ptr<bus>> bus::connect(bus_settings settings, metrics_registry& metrics) {
  auto state = std::make_unique<impl>(std::move(settings), metrics);
  for (auto via : {lane::rpc, lane::stream}) {
    auto made = state->open(via);
    if (!made) {
      std::unique_ptr<bus> half(new bus(std::move(state)));
      half->close(std::chrono::seconds(2));
      return made.failure();
    }
    const std::lock_guard lock(state->guard);
    state->connections[static_cast<int>(via)] = *made;
    // It may have been lost since: the call-back did not know this connection yet.
    state->up[static_cast<int>(via)] = natsConnection_Status(*made) == NATS_CONN_STATUS_CONNECTED;
  }
  state->connected_gauge.Set(state->up[0] && state->up[1] ? 1 : 0);
  std::unique_ptr<bus> made(new bus(std::move(state)));
  made->impl_->inbox_prefix = made->new_inbox();
  auto* raw = made->impl_.get();
  auto replies = made->subscribe_bytes(raw->inbox_prefix + ".*", {lane::rpc, {}, 65'536},
                                       [raw](inbound_bytes&& in) { raw->on_reply(std::move(in)); });
  if (!replies) return replies.failure();
  raw->replies = *std::move(replies);
  raw->deadlines = std::thread([raw] { raw->run_deadlines(); });
  return made;
}

bus::~bus() { close(std::chrono::seconds(2)); }

const subjects& bus::names() const { return impl_->names; }

bool bus::connected() const {
  const std::lock_guard lock(impl_->guard);
  return impl_->up[0] && impl_->up[1];
}

std::string bus::new_inbox() {
  natsInbox* made = nullptr;
  if (natsInbox_Create(&made) != NATS_OK) return "_INBOX.none";
  std::string text = made;
  natsInbox_Destroy(made);
  return text;
}

errc bus::publish_bytes(const std::string& to, const std::string& type, std::span<const std::uint8_t> bytes, lane via,
                        const std::string& reply_subject) {
  if (impl_->closing) return errc::bus_down;
  if (bytes.size() > max_message_bytes) return errc::too_large;
  natsMsg* message = nullptr;
  auto status = natsMsg_Create(&message, to.c_str(), reply_subject.empty() ? nullptr : reply_subject.c_str(),
                               reinterpret_cast<const char*>(bytes.data()), static_cast<int>(bytes.size()));
  if (status == NATS_OK && !type.empty()) status = natsMsgHeader_Set(message, "Content-Type", type.c_str());
  if (status == NATS_OK) status = natsConnection_PublishMsg(impl_->connection(via), message);
  natsMsg_Destroy(message);
  return from_nats(status);
}

errc bus::reply_to(const std::string& reply_subject, std::string_view root,
                   const flatbuffers::DetachedBuffer& message) {
  if (reply_subject.empty()) return errc::none;
  return publish_bytes(reply_subject, "application/x-flatbuffers; schema=" + std::string(root), bytes_of(message),
                       lane::rpc);
}

errc bus::refuse(const std::string& reply_subject, errc why) {
  if (reply_subject.empty() || impl_->closing) return errc::none;
  natsMsg* message = nullptr;
  auto status = natsMsg_Create(&message, reply_subject.c_str(), nullptr, nullptr, 0);
  if (status == NATS_OK) status = natsMsgHeader_Set(message, error_header, std::string(name(why)).c_str());
  if (status == NATS_OK) status = natsConnection_PublishMsg(impl_->connection(lane::rpc), message);
  natsMsg_Destroy(message);
  return from_nats(status);
}

void bus::reject(const inbound_bytes& raw, const error& problem) {
  impl_->bad_messages.Increment();
  static log::limiter repeated;
  if (auto n = repeated.admit())
    log::warn("message refused", {{"subject", raw.subject}, {"problem", render(problem)}, {"repeated", n}});
  refuse(raw.reply_to, problem.code);
}

result<subscription> bus::subscribe_bytes(const std::string& to, const subscribe_options& options,
                                          raw_handler handler) {
  auto state = std::make_shared<subscription::impl>();
  state->handler = std::move(handler);
  state->owner = this;
  state->credit = options.credit;
  state->name = to;
  state->retired = impl_->retired;
  state->dropped_total =
      &impl_->metrics.counter("infernex_bus_dropped_total", "Messages dropped or refused over a subscription's credit",
                              {{"subject", to.starts_with("_INBOX") ? "inbox" : to}});
  const auto status = subscription::impl::begin(state, impl_->connection(options.via), options.queue_group);
  if (status != NATS_OK) return error{from_nats(status), "subscribe " + to + ": " + natsStatus_GetText(status)};
  const std::lock_guard lock(impl_->guard);
  std::erase_if(impl_->subscriptions, [](const auto& s) { return s.expired(); });
  impl_->subscriptions.push_back(state);
  return subscription(state);
}

void bus::request_bytes(const std::string& to, const std::string& type, std::span<const std::uint8_t> bytes,
                        std::chrono::milliseconds timeout, raw_completion done) {
  converse_bytes(to, type, bytes, timeout, [done = std::move(done)](result<inbound_bytes>&& raw) {
    done(std::move(raw));
    return std::chrono::milliseconds(0);
  });
}

void bus::converse_bytes(const std::string& to, const std::string& type, std::span<const std::uint8_t> bytes,
                         std::chrono::milliseconds timeout, raw_listener each) {
  std::uint64_t id = 0;
  bool refused = false;
  bool sooner = false;
  {
    const std::lock_guard lock(impl_->guard);
    if (impl_->closing || !impl_->up[0]) {
      refused = true;
    } else {
      id = impl_->next_request++;
      const auto deadline = steady::now() + timeout;
      sooner = deadline < impl_->next_wake;
      impl_->requests.emplace(id, impl::pending{deadline, std::move(each)});
    }
  }
  if (refused) {
    each(errc::bus_down);  // NOLINT(bugprone-use-after-move): moved only where accepted
    return;
  }
  // Most requests are answered before the deadline thread looks again: do not wake it for each.
  if (sooner) impl_->changed.notify_all();
  const auto sent = publish_bytes(to, type, bytes, lane::rpc, impl_->inbox_prefix + "." + std::to_string(id));
  if (sent != errc::none)
    if (auto held = impl_->take(id)) held(sent);
}

std::shared_ptr<void> bus::watch_connection(std::function<void(bool)> watcher) {
  auto held = std::make_shared<std::function<void(bool)>>(std::move(watcher));
  bool now_up = false;
  {
    const std::lock_guard lock(impl_->guard);
    std::erase_if(impl_->watchers, [](const auto& w) { return w.expired(); });
    impl_->watchers.push_back(held);
    now_up = impl_->up[0] && impl_->up[1];
  }
  (*held)(now_up);
  return held;
}

void bus::close(std::chrono::milliseconds deadline) {
  const auto until = steady::now() + deadline;
  if (impl_->closing.exchange(true)) return;
  std::vector<std::shared_ptr<subscription::impl>> live;
  std::vector<raw_listener> unanswered;
  {
    const std::lock_guard lock(impl_->guard);
    impl_->stop_deadlines = true;
    for (auto& [id, entry] : impl_->requests) unanswered.push_back(std::move(entry.each));
    impl_->requests.clear();
    for (const auto& s : impl_->subscriptions)
      if (auto held = s.lock()) live.push_back(std::move(held));
  }
  impl_->changed.notify_all();
  if (impl_->deadlines.joinable()) impl_->deadlines.join();
  for (auto& each : unanswered) each(errc::cancelled);
  for (const auto& s : live) s->end();
  int open = 0;
  for (auto* nc : impl_->connections) {
    if (!nc) continue;
    ++open;
    natsConnection_FlushTimeout(nc, 500);
    natsConnection_Close(nc);  // joins its reading thread
  }
  impl_->retired->connections_closed();
  {
    std::unique_lock lock(impl_->guard);
    impl_->changed.wait_until(lock, until, [&] { return impl_->closed >= open; });
  }
  for (auto*& nc : impl_->connections) {
    natsConnection_Destroy(nc);
    nc = nullptr;
  }
}

}  // namespace infernex
