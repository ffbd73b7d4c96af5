#include "actors/simulator/kv_take.hpp"

#include <deque>
#include <memory>
#include <utility>

namespace infernex::simulator {

namespace {

using clock = kv_transfer::clock;
using std::chrono::milliseconds;

constexpr int metaserver_tries = 3;
constexpr milliseconds release_timeout{2'000};

class taking_count {
 public:
  explicit taking_count(kv_transfer& transfer) : transfer_(transfer) { transfer_.count_taking(1); }
  taking_count(const taking_count&) = delete;
  taking_count& operator=(const taking_count&) = delete;
  ~taking_count() { transfer_.count_taking(-1); }

 private:
  kv_transfer& transfer_;
};

/// Reserved blocks, given back unless they were kept.
class reservation {
 public:
  reservation(engine_loop& loop, sequence_id id) : loop_(loop), id_(id) {}
  reservation(const reservation&) = delete;
  reservation& operator=(const reservation&) = delete;
  ~reservation() {
    if (id_ != 0) loop_.release(id_);
  }
  sequence_id keep() { return std::exchange(id_, 0); }

 private:
  engine_loop& loop_;
  sequence_id id_;
};

milliseconds until(clock::time_point deadline) {
  return std::max(milliseconds(1), std::chrono::ceil<milliseconds>(deadline - clock::now()));
}

http::fields json_headers() { return {{"Content-Type", "application/json"}}; }

/// Tells a prefill engine that nobody will read; it may be gone, too.
http::task<void> give_up(http::worker& on, http::origin prefill, std::string body) {
  http::outgoing what{.method = "POST", .target = "/sim/kv/release", .headers = json_headers(), .body = body};
  http::call_options options;
  options.response_timeout = release_timeout;
  co_await on.upstream().fetch(prefill, what, options);
}

void refuse_kv(kv_transfer& transfer, const kv_transfer_request& from) {
  if (from.host.empty() || from.key.empty()) return;
  transfer.on().spawn(give_up(transfer.on(), {from.host, from.port}, render(kv_pull{.key = from.key})));
}

http::task<error> pull(kv_transfer& transfer, transfer_call& call, const kv_transfer_request& from,
                       std::uint32_t wanted, clock::time_point deadline) {
  const auto left = until(deadline);
  kv_pull asked{from.key, from.engine_id, from.blocks, wanted, static_cast<std::uint32_t>(left.count())};
  const auto body = render(asked);
  http::outgoing what{.method = "POST", .target = "/sim/kv/pull", .headers = json_headers(), .body = body};
  http::call_options options;
  options.connect_timeout = std::min(options.connect_timeout, left);
  options.response_timeout = left;
  options.cancel = &call.calls();
  const http::origin prefill{from.host, from.port};
  const auto answer = co_await transfer.on().upstream().fetch(prefill, what, options);
  if (!answer) co_return answer.failure();
  if (answer->status == 200) co_return error{};
  if (answer->status == 410) {
    // NIXL's handshake finds out; Mooncake talks to an engine that no longer listens, and hears nothing.
    const auto policy = transfer.engine().kv_transfer.stale_engine;
    if (transfer.engine().kv_transfer.has_bootstrap() && policy != stale_engine_policy::fail)
      co_await call.pass_until(policy == stale_engine_policy::hang ? clock::time_point::max() : deadline);
    co_return error{errc::not_found, "no engine " + from.engine_id + " any more"};
  }
  co_return error{answer->status == 404 ? errc::not_found : errc::connection_lost,
                  "the prefill engine refused: " + std::to_string(answer->status)};
}

struct metaserver_talk {
  http::cancel_source cancel;
  std::optional<error> failed;
};

/// Ends when the prefill has answered; that the KV has come may be known before.
http::task<void> ask_metaserver(kv_transfer& transfer, http::url at, std::string body,
                                std::shared_ptr<metaserver_talk> talk) {
  error problem;
  for (int attempt = 0; attempt < metaserver_tries; ++attempt) {
    http::outgoing what{.method = "POST", .target = at.path, .headers = json_headers(), .body = body};
    http::call_options options;
    options.response_timeout = transfer.engine().kv_transfer.timeout;
    options.cancel = &talk->cancel;
    const auto answer = co_await transfer.on().upstream().fetch(at.at, what, options);
    if (answer && answer->status < 300) co_return;
    if (talk->cancel.requested()) co_return;
    problem = answer ? error{errc::connection_lost, "the metaserver said " + std::to_string(answer->status)}
                     : answer.failure();
  }
  talk->failed = std::move(problem);
  transfer.changed();
}

http::task<error> await_push(kv_transfer& transfer, transfer_call& call, const kv_transfer_request& from,
                             const std::string& request_id, std::string body, clock::time_point deadline) {
  auto metaserver = http::parse_url(from.metaserver);
  if (!metaserver) co_return metaserver.failure();
  const awaited_entry push(transfer.pushes(), request_id);
  const auto talk = std::make_shared<metaserver_talk>();
  if (!transfer.faults().strike(fault_kind::drop_metaserver))
    transfer.on().spawn(ask_metaserver(transfer, *std::move(metaserver), std::move(body), talk));
  while (!push.come() && !talk->failed) {
    if (!co_await transfer.wait(call, deadline)) break;
  }
  if (push.come()) co_return error{};
  talk->cancel.request();
  if (talk->failed) co_return *talk->failed;
  co_return error{call.cancelled() ? errc::cancelled : errc::timed_out, "no prefill engine sent the KV"};
}

}  // namespace

http::task<result<kv_taken>> take_kv(kv_transfer& transfer, transfer_call& call, const kv_transfer_request& from,
                                     std::string request_id, std::vector<token_id> prompt, std::string salt) {
  const taking_count counted(transfer);
  const auto& engine = transfer.engine();
  const auto deadline = clock::now() + engine.kv_transfer.timeout;
  const auto id = transfer.loop().new_id();
  reservation memory(transfer.loop(), id);
  const block_hold* hold = transfer.loop().reserve(id, prompt, salt);
  while (!hold) {
    const bool go_on = co_await transfer.wait(call, deadline);
    if (!go_on) {
      refuse_kv(transfer, from);
      co_return error{call.cancelled() ? errc::cancelled : errc::timed_out, "no memory for the prompt's KV"};
    }
    hold = transfer.loop().reserve(id, prompt, salt);
  }
  const auto blocks = static_cast<std::uint32_t>(hold->blocks.size());
  const auto cached = hold->cached;
  error failed;
  if (engine.kv_transfer.protocol == transfer_protocol::ascend_layerwise) {
    auto body =
        metaserver_request(transfer.here(), request_id, hold->blocks, engine.block_size, cached * engine.block_size);
    failed = co_await await_push(transfer, call, from, request_id, std::move(body), deadline);
  } else {
    failed = co_await pull(transfer, call, from, blocks - cached, deadline);
    if (failed.code == errc::timed_out) refuse_kv(transfer, from);
  }
  if (failed.code != errc::none) {
    const bool compute = engine.kv_transfer.on_failure == transfer_failure_policy::recompute && !call.cancelled();
    if (compute) co_return kv_taken{};
    co_return failed;
  }
  transfer.loop().fill(id);
  kv_taken taken;
  taken.held = memory.keep();
  taken.tokens = (blocks - cached) * engine.block_size;
  co_return taken;
}

namespace {

/// Shared by the request and the waits for its prompts, which may outlive it by a moment.
struct kv_gathering {
  std::deque<transfer_call> calls;
  std::vector<kv_taken> taken;
  std::size_t left = 0;
  error failed;
  bool abandoned = false;
};

http::task<void> take_one(kv_transfer& transfer, std::shared_ptr<kv_gathering> into, std::size_t which, kv_wanted what,
                          std::string salt) {
  const auto taken = co_await take_kv(transfer, into->calls[which], what.from, what.request_id, std::move(what.prompt),
                                      std::move(salt));
  --into->left;
  if (!taken) {
    if (into->failed.code == errc::none) into->failed = taken.failure();
  } else if (into->abandoned) {
    transfer.loop().release(taken->held);
  } else {
    into->taken[which] = *taken;
  }
  transfer.changed();
}

}  // namespace

http::task<result<std::vector<kv_taken>>> take_all_kv(kv_transfer& transfer, transfer_call& call,
                                                      std::vector<kv_wanted> wanted, std::string salt) {
  if (wanted.size() == 1) {
    auto& only = wanted.front();
    const auto taken = co_await take_kv(transfer, call, only.from, only.request_id, std::move(only.prompt), salt);
    if (!taken) co_return taken.failure();
    co_return std::vector<kv_taken>(1, *taken);
  }
  const auto all = std::make_shared<kv_gathering>();
  all->taken.resize(wanted.size());
  all->left = wanted.size();
  for (std::size_t i = 0; i < wanted.size(); ++i) {
    all->calls.emplace_back(transfer.on().context());
    transfer.on().spawn(take_one(transfer, all, i, std::move(wanted[i]), salt));
  }
  bool here = !call.cancelled();
  while (here && all->left > 0 && all->failed.code == errc::none)
    here = co_await transfer.wait(call, clock::time_point::max());
  if (here && all->failed.code == errc::none) co_return std::move(all->taken);
  all->abandoned = true;
  for (auto& one : all->calls) one.cancel();
  for (const auto& one : all->taken) {
    if (one.held != 0) transfer.loop().release(one.held);
  }
  if (!here) co_return error{errc::cancelled, "the client left"};
  co_return all->failed;
}

}  // namespace infernex::simulator
