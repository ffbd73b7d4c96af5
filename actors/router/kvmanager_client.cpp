#include "actors/router/kvmanager_client.hpp"

#include <stdexcept>
#include <utility>

#include "actors/runtime/http/client.hpp"
#include "actors/runtime/http/io.hpp"

namespace infernex::router {

namespace {
constexpr std::size_t max_answer_bytes = 16 << 20;
}

struct kvmanager_client::state {
  http::url target;
  std::chrono::milliseconds timeout;

  http::task<result<http::response>> fetch(http::worker& worker, const std::string& body) const {
    // Shared: a timer that has gone off just now calls its handler although it is cancelled, maybe after this call's
    // end.
    const auto late = std::make_shared<http::cancel_source>();
    http::timer deadline(worker.context());
    deadline.expires_after(timeout);
    deadline.async_wait([late](const boost::system::error_code& cancelled) {
      if (!cancelled) late->request();
    });
    http::fields headers;
    headers.push_back({"Content-Type", "application/json"});
    http::outgoing what;
    what.method = "POST";
    what.target = target.path;
    what.headers = std::move(headers);
    what.body = body;
    http::call_options options;
    options.connect_timeout = options.response_timeout = options.idle_timeout = timeout;
    options.cancel = late.get();
    auto answer = co_await worker.upstream().fetch(target.at, what, options, max_answer_bytes);
    if (!answer && answer.failure().code == errc::cancelled) co_return result<http::response>(errc::timed_out);
    co_return answer;
  }

  static http::task<void> run(std::shared_ptr<const state> self, http::worker& worker, fb::KvMatchQueryT question,
                              completion done) {
    const auto body = kvmanager_question(question);
    const auto answer = co_await self->fetch(worker, body);
    if (!answer)
      done(result<view<fb::KvMatchReply>>(answer.failure()));
    else
      done(read_kvmanager_answer(answer->status, answer->body, question.model, question.chains.size()));
  }
};

kvmanager_client::kvmanager_client(const kvmanager_settings& how) {
  auto target = http::parse_url(target_of(how));
  if (!target) throw std::invalid_argument(render(target.failure()));
  state_ = std::make_shared<const state>(state{*std::move(target), wait_of(how)});
}

kvmanager_client::~kvmanager_client() { threads_.stop(); }

void kvmanager_client::ask(fb::KvMatchQueryT question, completion done) {
  auto& worker = threads_.at(0);
  worker.spawn(state::run(state_, worker, std::move(question), std::move(done)));
}

}  // namespace infernex::router
