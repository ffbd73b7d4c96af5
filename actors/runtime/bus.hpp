#pragma once

#include <chrono>
#include <cstdint>
#include <functional>
#include <memory>
#include <span>
#include <string>
#include <string_view>

#include "messages/subjects.hpp"
#include "messages/view.hpp"

namespace infernex {

class metrics_registry;

/// Which of the process's two NATS connections: `rpc` sends at once (requests, replies, announcements),
/// `stream` buffers (deltas, loads, decisions). There is no order between the two.
enum class lane : std::uint8_t { rpc, stream };

struct bus_settings {
  std::string url = "nats://127.0.0.1:4222";
  std::string prefix = "ix.v1";
  /// Shown by NATS's own monitoring.
  std::string client_name = "infernex";
  /// Pause between attempts to reconnect; there is no limit to their number.
  std::chrono::milliseconds reconnect_wait{250};
  /// How long the first connect is retried before connect() fails.
  std::chrono::milliseconds connect_deadline{10'000};
};

/// A message as a subscriber gets it. Holding it holds one credit of its subscription.
struct inbound_bytes {
  chunk data;
  std::string subject;
  /// Empty unless the sender waits for a reply.
  std::string reply_to;
  std::chrono::steady_clock::time_point received_at;
  /// Not none: the responder refused, or nobody listens; there are no bytes.
  errc problem = errc::none;
};

/// A verified message.
template <class T>
struct inbound {
  view<T> message;
  std::string subject;
  std::string reply_to;
  std::chrono::steady_clock::time_point received_at;
};

/// Ends its subscription when destroyed. No call-back starts after the destructor has returned.
class subscription {
 public:
  struct impl;
  subscription() = default;
  explicit subscription(std::shared_ptr<impl> state) : impl_(std::move(state)) {}
  subscription(subscription&&) noexcept = default;
  subscription& operator=(subscription&& other) noexcept;
  ~subscription();

  /// Messages dropped or refused so far because the credit was used up.
  std::uint64_t dropped() const;
  explicit operator bool() const { return impl_ != nullptr; }

 private:
  std::shared_ptr<impl> impl_;
};

struct subscribe_options {
  lane via = lane::stream;
  /// Members of a queue group share a subject's messages.
  std::string queue_group;
  /// Messages that may be alive (queued or being handled) at once. Above it a message without reply
  /// subject is dropped and counted, a request is refused with errc::overloaded.
  std::uint32_t credit = 1024;
};

/// The process's access to NATS. Thread-safe. Call-backs run on NATS's threads: they must be short and
/// must not throw; an actor's call-back is one anon_send.
class bus {
 public:
  /// Errors: bus_down (no server within the deadline).
  static result<std::unique_ptr<bus>> connect(bus_settings settings, metrics_registry& metrics);
  ~bus();

  const subjects& names() const;
  bool connected() const;

  /// Errors: bus_down (over the reconnect buffer), too_large.
  template <class T>
  errc publish(const subject<T>& to, const flatbuffers::DetachedBuffer& message, lane via = lane::stream) {
    return publish_bytes(to.name, content_type<T>(), bytes_of(message), via);
  }

  /// Answers a request. No-op if it has no reply subject.
  template <class T>
  errc reply(const inbound<T>& request, std::string_view root, const flatbuffers::DetachedBuffer& message) {
    return reply_to(request.reply_to, root, message);
  }
  errc reply_to(const std::string& reply_subject, std::string_view root, const flatbuffers::DetachedBuffer& message);
  /// Tells the requester that its request failed.
  errc refuse(const std::string& reply_subject, errc why);

  /// Verifies each message once; a bad buffer is counted, logged (rate-limited) and refused or dropped.
  template <class T, class Handler>
  result<subscription> subscribe(const subject<T>& to, const subscribe_options& options, Handler handler) {
    return subscribe_bytes(to.name, options, [this, handler = std::move(handler)](inbound_bytes&& raw) mutable {
      if (raw.problem != errc::none) return;
      auto verified = view<T>::verify(std::move(raw.data));
      if (!verified) return reject(raw, verified.failure());
      handler(inbound<T>{*std::move(verified), std::move(raw.subject), std::move(raw.reply_to), raw.received_at});
    });
  }

  /// Asks and hands the verified reply to `done`, once, on a NATS thread or the bus's deadline thread.
  /// Errors given to `done`: timed_out, unreachable (nobody subscribed), overloaded and whatever else the
  /// responder refused with, malformed_message, bus_down.
  template <class Reply, class Request, class Done>
  void request(const subject<Request>& to, const flatbuffers::DetachedBuffer& message,
               std::chrono::milliseconds timeout, Done done) {
    request_bytes(to.name, content_type<Request>(), bytes_of(message), timeout,
                  [done = std::move(done)](result<inbound_bytes>&& raw) mutable {
                    if (!raw) return done(result<view<Reply>>(raw.failure()));
                    done(view<Reply>::verify(std::move(raw->data)));
                  });
  }

  /// As request, for an answer that may come in several messages. `each` is called for every one, never at the same
  /// time, and says how long to wait for the next; 0: that was the last. A failure is always the last.
  template <class Reply, class Request, class Each>
  void converse(const subject<Request>& to, const flatbuffers::DetachedBuffer& message,
                std::chrono::milliseconds timeout, Each each) {
    converse_bytes(to.name, content_type<Request>(), bytes_of(message), timeout,
                   [each = std::move(each)](result<inbound_bytes>&& raw) mutable -> std::chrono::milliseconds {
                     if (!raw) return each(result<view<Reply>>(raw.failure()));
                     return each(view<Reply>::verify(std::move(raw->data)));
                   });
  }

  /// A fresh subject under which the answers to one publish-with-reply arrive (for answers in several
  /// messages); subscribe to it, then publish with publish_request.
  std::string new_inbox();
  template <class T>
  errc publish_request(const subject<T>& to, const flatbuffers::DetachedBuffer& message, const std::string& inbox) {
    return publish_bytes(to.name, content_type<T>(), bytes_of(message), lane::rpc, inbox);
  }

  /// Called with true after a (re)connect of both connections, with false after the loss of either, for
  /// as long as the returned handle lives. Called at once with the present state.
  std::shared_ptr<void> watch_connection(std::function<void(bool connected)> watcher);

  /// Sends what is buffered, ends every subscription, closes both connections. No call-back runs after.
  void close(std::chrono::milliseconds deadline);

  // The untyped layer, for `infernex sub` and tests.
  using raw_handler = std::function<void(inbound_bytes&&)>;
  using raw_completion = std::function<void(result<inbound_bytes>&&)>;
  using raw_listener = std::function<std::chrono::milliseconds(result<inbound_bytes>&&)>;
  result<subscription> subscribe_bytes(const std::string& to, const subscribe_options& options, raw_handler handler);
  errc publish_bytes(const std::string& to, const std::string& type, std::span<const std::uint8_t> bytes, lane via,
                     const std::string& reply_subject = {});
  void request_bytes(const std::string& to, const std::string& type, std::span<const std::uint8_t> bytes,
                     std::chrono::milliseconds timeout, raw_completion done);
  void converse_bytes(const std::string& to, const std::string& type, std::span<const std::uint8_t> bytes,
                      std::chrono::milliseconds timeout, raw_listener each);

 private:
  struct impl;
  explicit bus(std::unique_ptr<impl> state);
  void reject(const inbound_bytes& raw, const error& problem);
  std::unique_ptr<impl> impl_;
};

}  // namespace infernex
