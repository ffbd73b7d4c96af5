#include "actors/engine/parity_caller.hpp"

#include <atomic>
#include <optional>
#include <stdexcept>
#include <utility>

#include <boost/asio/post.hpp>

#include "actors/runtime/http/client.hpp"
#include "actors/runtime/http/server.hpp"

namespace infernex::engine {

/// Everything but `ended` belongs to the HTTP thread. The coroutines hold it, so it outlives them.
struct parity_caller::line {
  http::worker& worker;
  http::url base;
  http::fields headers;
  sink deliver;
  http::cancel_source cancel;
  std::atomic<bool> ended{false};

  static http::task<void> ask(std::shared_ptr<line> self, std::uint64_t probe, http_call question,
                              std::chrono::milliseconds timeout) {
    auto answer = std::make_shared<parity_answer>();
    answer->probe = probe;
    const auto target = self->base.path + question.path;
    const http::outgoing what{"POST", target, self->headers, question.body};
    http::call_options limits;
    limits.connect_timeout = limits.response_timeout = limits.idle_timeout = timeout;
    limits.cancel = &self->cancel;
    auto got = co_await self->worker.upstream().fetch(self->base.at, what, limits, max_token_answer_bytes);
    if (self->ended) co_return;
    if (got) {
      answer->status = got->status;
      answer->body = std::move(got->body);
    } else {
      answer->body = render(got.failure());
    }
    self->deliver(std::move(answer));
  }
};

parity_caller::parity_caller(std::shared_ptr<http::io_threads> threads, const discovery::engine_descriptor& engine,
                             sink deliver)
    : threads_(std::move(threads)) {
  auto base = http::parse_url(engine.url);
  if (!base) throw std::invalid_argument(render(base.failure()));
  while (base->path.ends_with('/')) base->path.pop_back();
  http::fields headers{{"Content-Type", "application/json"}};
  if (engine.data_parallel_rank)
    headers.push_back({"X-data-parallel-rank", std::to_string(*engine.data_parallel_rank)});
  line_.reset(new line{threads_->at(0), *std::move(base), std::move(headers), std::move(deliver), {}, {}});
}

parity_caller::~parity_caller() {
  line_->ended = true;
  boost::asio::post(line_->worker.context(), [self = line_] { self->cancel.request(); });
}

void parity_caller::ask(std::uint64_t probe, http_call question, std::chrono::milliseconds timeout) {
  boost::asio::post(line_->worker.context(), [self = line_, probe, question = std::move(question), timeout]() mutable {
    self->worker.spawn(line::ask(self, probe, std::move(question), timeout));
  });
}

}  // namespace infernex::engine
