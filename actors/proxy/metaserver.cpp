#include "actors/proxy/metaserver.hpp"

#include <boost/asio/post.hpp>

#include "actors/proxy/json_scan.hpp"

namespace infernex::proxy {
namespace {

/// The id we gave the request: vLLM makes `chatcmpl-<id>` or `cmpl-<id>-<prompt>` of it.
std::string_view own_id(std::string_view request_id) {
  const auto dash = request_id.find('-');
  if (dash == std::string_view::npos) return {};
  request_id.remove_prefix(dash + 1);
  return request_id.substr(0, request_id.find('-'));
}

}  // namespace

void metaserver_call::answer(unsigned status, std::string body) {
  if (answered.exchange(true)) return;
  http::asio::post(caller->context(), [call = shared_from_this(), status, body = std::move(body)]() mutable {
    call->status_ = status;
    call->body_ = std::move(body);
    if (call->waiting) call->waiting->notify();
  });
}

void metaserver::add(const std::string& id, http::worker& on, receiver to) {
  const std::lock_guard lock(guard_);
  waiting_.insert_or_assign(id, entry{&on, std::move(to)});
}

void metaserver::remove(const std::string& id) {
  const std::lock_guard lock(guard_);
  waiting_.erase(id);
}

http::task<void> metaserver::serve(http::worker& on, http::request& in, http::responder& out,
                                   std::chrono::milliseconds limit) {
  const auto request_id = text_of(find_value(in.body, "request_id"));
  if (!request_id || !edited(in.body, {})) {
    const auto body = http::openai_error(400, "not a JSON object with a request_id");
    co_await out.send(400, "application/json", body);
    co_return;
  }
  entry found{};
  {
    const std::lock_guard lock(guard_);
    if (const auto it = waiting_.find(own_id(*request_id)); it != waiting_.end()) found = it->second;
  }
  if (!found.on) {
    const auto body = http::openai_error(404, "no request of this id waits for its prefill");
    co_await out.send(404, "application/json", body);
    co_return;
  }
  http::waiter answered(on.context());
  struct listening {
    std::shared_ptr<metaserver_call> call = std::make_shared<metaserver_call>();
    ~listening() { call->waiting = nullptr; }
  } mine;
  auto& call = *mine.call;
  call.request_id = *request_id;
  call.params = in.body;
  call.caller = &on;
  call.waiting = &answered;
  http::asio::post(found.on->context(), [to = std::move(found.to), call_ = mine.call] { to(call_); });
  const auto how = co_await answered.wait(std::chrono::steady_clock::now() + limit);
  if (how != http::waiter::outcome::notified) {
    const auto body = http::openai_error(504, "the prefill was not done in time");
    co_await out.send(504, "application/json", body);
    co_return;
  }
  co_await out.send(call.status_, "application/json", call.body_);
}

}  // namespace infernex::proxy
