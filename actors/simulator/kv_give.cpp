#include "actors/simulator/kv_give.hpp"

#include <utility>

namespace infernex::simulator {

namespace {

using clock = kv_transfer::clock;
using std::chrono::milliseconds;

constexpr std::string_view json_type = "application/json";
constexpr milliseconds push_timeout{5'000};

http::task<void> refuse(http::responder& out, unsigned status, std::string message) {
  const auto body = render(refusal{status, std::move(message), {}});
  co_await out.send(status, json_type, body);
}

http::task<error> push(kv_transfer& transfer, transfer_call& call, const kv_transfer_request& to,
                       std::uint32_t prompt_tokens, clock::time_point started) {
  const auto sent = prompt_tokens - std::min(prompt_tokens, to.cached_tokens);
  const bool there = co_await call.pass_until(transfer.link().send(started, sent));
  if (!there) co_return error{errc::cancelled, "the client left"};
  if (transfer.faults().strike(fault_kind::transfer)) co_return error{errc::connection_lost, "the transfer failed"};
  const auto body = render(kv_pull{.key = to.key, .engine_id = to.engine_id});
  http::outgoing what{.method = "POST", .target = "/sim/kv/push", .headers = {}, .body = body};
  http::call_options options;
  options.response_timeout = push_timeout;
  options.cancel = &call.calls();
  const http::origin decode{to.host, to.port};
  const auto answer = co_await transfer.on().upstream().fetch(decode, what, options);
  if (!answer) co_return answer.failure();
  if (answer->status != 200) co_return error{errc::not_found, "the decode engine does not wait for " + to.key};
  co_return error{};
}

http::task<error> until_read(kv_transfer& transfer, transfer_call& call, const std::string& key,
                             const awaited_entry* reader) {
  while (reader && !reader->come() && transfer.leases().find(key)) {
    // The lease's own end bounds this.
    const bool go_on = co_await transfer.wait(call, clock::time_point::max());
    if (!go_on) co_return error{errc::cancelled, "the client left"};
  }
  if (reader && reader->come().value_or(false)) co_return error{};
  co_return error{errc::timed_out, "no decode engine read the KV"};
}

http::task<void> serve_pull(kv_transfer& transfer, const kv_pull& asked, http::responder& out) {
  if (!asked.engine_id.empty() && asked.engine_id != transfer.here().engine_id)
    co_return co_await refuse(out, 410, "Engine " + asked.engine_id + " is no more.");
  if (transfer.faults().strike(fault_kind::transfer)) co_return co_await refuse(out, 500, "The transfer failed.");
  transfer_call call(transfer.on().context());
  out.on_client_gone([&call] { call.cancel(); });
  // Where both engines are asked at once the reader may come first.
  if (transfer.engine().kv_transfer.has_bootstrap()) {
    const auto deadline = clock::now() + milliseconds(asked.wait_ms);
    while (!transfer.leases().find(asked.key)) {
      if (!co_await transfer.wait(call, deadline)) break;
    }
  }
  if (call.cancelled()) {
    transfer.end_lease(asked.key, false);
    co_return;
  }
  switch (transfer.leases().begin_read(asked.key, asked.blocks)) {
    case kv_lease_book::outcome::unknown:
      co_return co_await refuse(out, 404, "Nothing is held for " + asked.key + ".");
    case kv_lease_book::outcome::busy:
      co_return co_await refuse(out, 409, "Somebody else reads " + asked.key + ".");
    case kv_lease_book::outcome::no_such_block:
      co_return co_await refuse(out, 404, "A block that was asked for is not held for " + asked.key + ".");
    case kv_lease_book::outcome::begun:
      break;
  }
  const auto held = transfer.leases().find(asked.key)->blocks.size();
  const auto tokens = std::min<std::uint64_t>(held, asked.wanted) * transfer.engine().block_size;
  const bool read = co_await call.pass_until(transfer.link().send(clock::now(), tokens));
  transfer.end_lease(asked.key, read);
  if (read) co_await out.send(200, json_type, "{}");
}

http::task<void> take_push(kv_transfer& transfer, const kv_pull& pushed, http::responder& out) {
  const bool known = pushed.engine_id == transfer.here().engine_id && transfer.pushes().tell(pushed.key, true);
  if (!known) co_return co_await refuse(out, 404, "Nobody waits for " + pushed.key + ".");
  transfer.changed();
  co_await out.send(200, json_type, "{}");
}

}  // namespace

http::task<error> hand_over_kv(kv_transfer& transfer, transfer_call& call, const kv_transfer_request& to,
                               const awaited_entry* reader, std::uint32_t prompt_tokens, clock::time_point started) {
  const auto protocol = transfer.engine().kv_transfer.protocol;
  if (protocol == transfer_protocol::sglang) {
    auto failed = co_await until_read(transfer, call, to.key, reader);
    if (failed.code == errc::cancelled) transfer.end_lease(to.key, false);
    co_return failed;
  }
  if (protocol != transfer_protocol::ascend_layerwise) co_return error{};
  auto failed = co_await push(transfer, call, to, prompt_tokens, started);
  transfer.end_lease(to.key, failed.code == errc::none);
  co_return failed;
}

http::task<void> handle_peer(kv_transfer& transfer, const http::request& in, http::responder& out) {
  if (in.path == "/query" && in.method == "GET" && transfer.engine().kv_transfer.has_bootstrap()) {
    const auto body = render_query(transfer.here());
    co_await out.send(200, json_type, body);
    co_return;
  }
  const bool known = in.path == "/sim/kv/pull" || in.path == "/sim/kv/push" || in.path == "/sim/kv/release";
  if (!known) co_return co_await refuse(out, 404, "Not Found");
  if (in.method != "POST") co_return co_await refuse(out, 405, "Method Not Allowed");
  auto outcome = parse_pull(in.body);
  if (const auto* problem = std::get_if<refusal>(&outcome))
    co_return co_await refuse(out, problem->status, problem->message);
  const auto& asked = std::get<kv_pull>(outcome);
  if (in.path == "/sim/kv/pull") co_return co_await serve_pull(transfer, asked, out);
  if (in.path == "/sim/kv/push") co_return co_await take_push(transfer, asked, out);
  const auto* lease = transfer.leases().find(asked.key);
  if (lease && !lease->reading) transfer.end_lease(asked.key, false);
  co_await out.send(200, json_type, "{}");
}

}  // namespace infernex::simulator
