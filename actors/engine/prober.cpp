#include "actors/engine/prober.hpp"

#include <algorithm>
#include <atomic>
#include <optional>
#include <stdexcept>
#include <utility>

#include <boost/asio/basic_waitable_timer.hpp>
#include <boost/asio/post.hpp>
#include <boost/asio/redirect_error.hpp>

#include "actors/runtime/http/client.hpp"
#include "actors/runtime/http/server.hpp"

namespace infernex::engine {

namespace {

namespace asio = boost::asio;
using steady = std::chrono::steady_clock;
using timer = asio::basic_waitable_timer<steady, asio::wait_traits<steady>, http::executor>;
using milliseconds = std::chrono::milliseconds;

constexpr std::size_t max_health_bytes = 64 << 10;
constexpr std::size_t max_models_bytes = 1 << 20;
/// Between two rounds, however slow the last one was.
constexpr milliseconds least_pause{20};

std::uint64_t wall_ns() {
  const auto since_1970 = std::chrono::system_clock::now().time_since_epoch();
  return static_cast<std::uint64_t>(std::chrono::duration_cast<std::chrono::nanoseconds>(since_1970).count());
}

probe_outcome outcome_of(errc code) {
  return code == errc::unreachable ? probe_outcome::refused : probe_outcome::failed;
}

}  // namespace

/// Everything but `stopped` belongs to the HTTP thread. The coroutines hold it, so it outlives them.
struct prober::loop {
  loop(http::worker& at, std::shared_ptr<const settings> with, discovery::engine_descriptor about, http::url where,
       sink to)
      : worker(at),
        options(std::move(with)),
        engine(std::move(about)),
        base(std::move(where)),
        deliver(std::move(to)),
        pause(at.context()),
        deadline(at.context()) {
    while (base.path.ends_with('/')) base.path.pop_back();
  }

  http::worker& worker;
  std::shared_ptr<const settings> options;
  discovery::engine_descriptor engine;
  http::url base;
  sink deliver;
  timer pause;
  timer deadline;
  std::optional<http::cancel_source> cancel;
  std::atomic<bool> stopped{false};

  std::uint32_t failures = 0;
  bool was_ready = false;
  std::optional<steady::time_point> scraped_at;
  std::optional<steady::time_point> models_at;

  bool is_due(const std::optional<steady::time_point>& last, milliseconds interval) const {
    // A round that comes a little early does not wait for the next one.
    return !was_ready || !last || steady::now() - *last >= interval - interval / 10;
  }

  http::task<result<http::response>> get(std::string path, milliseconds timeout, std::size_t max_bytes) {
    http::outgoing question;
    question.target = path;
    http::call_options limits{timeout, timeout, timeout, &*cancel};
    co_return co_await worker.upstream().fetch(base.at, question, limits, max_bytes);
  }

  http::task<void> ask_models(probe_result& found) {
    const auto answer = co_await get(base.path + "/v1/models", options->scrape_timeout, max_models_bytes);
    if (!answer || answer->status != 200) {
      found.problem = answer ? error{errc::malformed_input, "/v1/models answers " + std::to_string(answer->status)}
                             : answer.failure();
      co_return;
    }
    auto models = read_model_list(answer->body, engine.model);
    if (models) {
      found.models = *std::move(models);
      models_at = steady::now();
    } else {
      found.problem = models.failure();
    }
  }

  http::task<void> ask_metrics(probe_result& found) {
    const auto began = steady::now();
    const auto answer = co_await get(base.path + "/metrics", options->scrape_timeout, max_metrics_bytes);
    if (!answer || answer->status != 200) {
      found.problem = answer ? error{errc::malformed_input, "/metrics answers " + std::to_string(answer->status)}
                             : answer.failure();
      co_return;
    }
    auto metrics = read_metrics(answer->body, options->metrics, engine.data_parallel_rank);
    scraped_at = steady::now();
    found.scrape_ms = std::chrono::duration<double, std::milli>(*scraped_at - began).count();
    if (metrics)
      found.metrics = *std::move(metrics);
    else
      found.problem = metrics.failure();
  }

  http::task<void> ask(probe_result& found) {
    const auto answer = co_await get(base.path + "/health", options->probe_timeout, max_health_bytes);
    if (!answer) {
      found.health.outcome = outcome_of(answer.failure().code);
      found.problem = answer.failure();
      was_ready = false;
      co_return;
    }
    found.health.outcome = probe_outcome::answered;
    found.health.status = answer->status;
    if (answer->status == 200) {
      if (is_due(models_at, options->models_interval)) co_await ask_models(found);
      if (is_due(scraped_at, options->scrape_interval)) co_await ask_metrics(found);
    }
    was_ready = answer->status == 200;
  }

  /// How long to wait until the next round.
  milliseconds pause_after(const probe_result& found, steady::time_point began) {
    failures = found.health.outcome == probe_outcome::answered ? 0 : failures + 1;
    auto wanted = probe_pause(options->health, failures);
    // An engine that died between two questions of one round is as suspicious as one that refused the first.
    const auto code = found.problem.code;
    if (failures == 0 && (code == errc::unreachable || code == errc::connection_lost))
      wanted = std::min(wanted, options->health.suspicion_pause);
    const auto took = std::chrono::duration_cast<milliseconds>(steady::now() - began);
    return std::max(wanted - took, least_pause);
  }

  static http::task<void> run(std::shared_ptr<loop> self) {
    while (!self->stopped) {
      auto found = std::make_shared<probe_result>();
      const auto began = steady::now();
      self->cancel.emplace();
      // An engine that answers one byte at a time must not hold a round up.
      self->deadline.expires_after(self->options->probe_timeout + 2 * self->options->scrape_timeout);
      self->deadline.async_wait([weak = std::weak_ptr(self)](const boost::system::error_code& aborted) {
        if (const auto late = weak.lock(); late && !aborted) late->cancel->request();
      });
      co_await self->ask(*found);
      self->deadline.cancel();
      if (self->stopped) co_return;
      found->at = steady::now();
      found->health.wall_ns = wall_ns();
      const auto wait = self->pause_after(*found, began);
      self->deliver(std::move(found));
      self->pause.expires_after(wait);
      boost::system::error_code cancelled;
      co_await self->pause.async_wait(asio::redirect_error(http::use_task, cancelled));
    }
  }
};

prober::prober(std::shared_ptr<http::io_threads> threads, std::shared_ptr<const settings> with,
               const discovery::engine_descriptor& engine, sink deliver)
    : threads_(std::move(threads)) {
  auto& worker = threads_->at(0);
  auto base = http::parse_url(engine.url);
  if (!base) throw std::invalid_argument(render(base.failure()));
  loop_ = std::make_shared<loop>(worker, std::move(with), engine, *std::move(base), std::move(deliver));
  worker.spawn(loop::run(loop_));
}

prober::~prober() {
  loop_->stopped = true;
  asio::post(loop_->worker.context(), [self = loop_] {
    if (self->cancel) self->cancel->request();
    self->pause.cancel();
  });
}

}  // namespace infernex::engine
