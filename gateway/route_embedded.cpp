#include "gateway/route_embedded.hpp"

#include <random>

#include "actors/router/saturation.hpp"
#include "gateway/door.hpp"
#include "gateway/placing.hpp"

namespace infernex::gateway {
namespace {

/// `infernex_gateway_queue_…`: as `infernex_router_queue_…`.
struct queue_counters {
  explicit queue_counters(metrics_registry& r)
      : length(r.gauge("infernex_gateway_queue_length", "Requests that wait for an engine to have room")),
        released(r.counter("infernex_gateway_queue_released_total", "Requests that waited and got an engine")),
        left(r.counter("infernex_gateway_queue_left_total", "Requests whose clients left while they waited")),
        full(shed(r, "full")),
        sheddable(shed(r, "sheddable")),
        too_long(shed(r, "waited_too_long")),
        wait(r.histogram("infernex_gateway_queue_wait_seconds", "Waiting for an engine, of those who got one",
                         request_buckets())) {}
  static prometheus::Counter& shed(metrics_registry& r, const char* reason) {
    return r.counter("infernex_gateway_queue_shed_total", "Requests that were given no engine while all were saturated",
                     {{"reason", reason}});
  }
  prometheus::Gauge& length;
  prometheus::Counter& released;
  prometheus::Counter& left;
  prometheus::Counter& full;
  prometheus::Counter& sheddable;
  prometheus::Counter& too_long;
  prometheus::Histogram& wait;
};

class route_embedded final : public decider {
 public:
  route_embedded(gateway_shared& shared, http::worker& worker, std::shared_ptr<indexer::index_set> index)
      : shared_(shared),
        door_(std::make_shared<door>(worker.context())),
        topology_(shared.facts->fleet.topologies()),
        room_(shared.facts->room),
        saturated_(shared.how.policy.queue.saturated),
        queue_(shared.process.metrics),
        index_(std::move(index)),
        lookups_(*index_),
        predictions_(shared.facts->predicted),
        how_(shared.how.policy),
        newest_(shared.newest_policy),
        scheduler_(router::make_scheduler(router::spec_of(how_), std::random_device{}())),
        by_prediction_(shared.process.metrics.counter(
            "infernex_gateway_decisions_by_prediction_total",
            "Decisions taken here for an engine that should cache more than the index knows")) {}

  http::task<choice> choose(const route_request& request, std::shared_ptr<const router::topology> topology,
                            waiter& wake) override {
    const auto* candidates = topology ? topology->find(request.model) : nullptr;
    if (!waits(request, candidates)) co_return decide(request, candidates, {});
    co_return co_await wait_for_room(request, *candidates, wake);
  }

  void close() override { door_->close(); }
  bool predicts() const override { return shared_.how.prediction.enabled && scheduler_->uses_cache(); }

 private:
  bool waits(const route_request& request, const router::model_endpoints* candidates);
  http::task<choice> wait_for_room(const route_request& request, const router::model_endpoints& candidates,
                                   waiter& wake);
  choice decide(const route_request& request, const router::model_endpoints* candidates,
                std::span<const std::string_view> full);

  /// Takes over a policy that was read anew since the last decision: one atomic load where there is none.
  void follow_policy() {
    const auto* newest = newest_.get();
    if (newest == in_use_) return;
    in_use_ = newest;
    how_.config = *newest;
    scheduler_ = router::make_scheduler(router::spec_of(how_), std::random_device{}());
  }

  gateway_shared& shared_;
  std::shared_ptr<door> door_;
  published<router::topology>::reader topology_;
  waiting_room& room_;
  router::saturation saturated_;
  queue_counters queue_;
  std::shared_ptr<indexer::index_set> index_;
  indexer::index_set::reader lookups_;
  router::prediction_index::reader predictions_;
  router::policy how_;
  published<router::scheduler_spec>::reader newest_;
  const router::scheduler_spec* in_use_ = nullptr;
  std::unique_ptr<router::scheduler> scheduler_;
  prometheus::Counter& by_prediction_;
};

choice route_embedded::decide(const route_request& request, const router::model_endpoints* candidates,
                              std::span<const std::string_view> full) {
  follow_policy();
  router::overlaps cached;
  if (request.keys.empty()) {
    cached.unknown_because = request.key_mode == fb::KeyMode::Token ? "the prompt is shorter than a block"
                                                                    : "the prompt's tokens are not known";
  } else if (request.key_mode == fb::KeyMode::Text) {
    cached.unknown_because = "keys of text are not indexed";
  } else if (const auto matches = lookups_.lookup(request.model, request.keys)) {
    cached.known = true;
    cached.found = *matches;
  } else {
    cached.unknown_because = "the model is not indexed";
  }
  if (predicts()) cached.predicted = predictions_.lookup(request.model, request.key_mode, request.keys);
  auto chosen = place(request, candidates, shared_.facts->fleet.board(), cached, *scheduler_,
                      std::chrono::steady_clock::now(), how_.queue, full);
  if (!chosen.ranked.empty() && chosen.ranked.front().by_prediction) by_prediction_.Increment();
  return chosen;
}

/// In the normal case: an atomic load, and one engine's loads.
bool route_embedded::waits(const route_request& request, const router::model_endpoints* candidates) {
  if (!how_.queue.enabled || !candidates) return false;
  const std::vector<std::string_view> exclude(request.exclude.begin(), request.exclude.end());
  if (room_.waits_for(candidates->model))
    return router::anyone_could_take(*candidates, {request.adapter, exclude, scheduler_->disaggregates()});
  return saturated_.everywhere(*candidates, {request.adapter, exclude, scheduler_->disaggregates()},
                               shared_.facts->fleet.board(), std::chrono::steady_clock::now());
}

/// A place in the room; given back when the request goes on, or its coroutine is destroyed.
class seat {
 public:
  explicit seat(waiting_room& room) : room_(room) {}
  seat(const seat&) = delete;
  ~seat() {
    *gone_ = true;
    if (who_ != 0) room_.leave(who_);
  }
  /// Position, or nothing if there is no room to wait.
  std::optional<std::size_t> take(router::waiting_line::request what, router::engine_wanted wanted, waiter& wake,
                                  const std::shared_ptr<door>& way) {
    const auto got = room_.enter(
        std::move(what), wanted,
        [way, told = told_, gone = gone_, &wake](waiting_room::word word) {
          way->post([told, gone, &wake, word] {
            if (*gone) return;
            *told = word;
            wake.notify();
          });
        },
        std::chrono::steady_clock::now());
    if (!got) return std::nullopt;
    who_ = got->who;
    return got->position;
  }
  const std::optional<waiting_room::word>& told() const { return *told_; }

 private:
  waiting_room& room_;
  waiting_room::ticket who_ = 0;
  // Of the worker's thread only; shared with words that are on their way there.
  std::shared_ptr<bool> gone_ = std::make_shared<bool>(false);
  std::shared_ptr<std::optional<waiting_room::word>> told_ = std::make_shared<std::optional<waiting_room::word>>();
};

http::task<choice> route_embedded::wait_for_room(const route_request& request,
                                                 const router::model_endpoints& candidates, waiter& wake) {
  const auto began = std::chrono::steady_clock::now();
  const auto shed = [&](std::string why, prometheus::Counter& counted, bool waited) {
    counted.Increment();
    choice out;
    out.reason = std::move(why);
    out.shed = shed_request{std::chrono::milliseconds(1'000), waited};
    return out;
  };
  const std::vector<std::pair<std::string_view, std::string_view>> headers(request.headers.begin(),
                                                                           request.headers.end());
  const auto terms = router::terms_of(headers, how_.queue);
  if (terms.priority < 0)
    co_return shed(
        "every engine is saturated, and a request of priority " + std::to_string(terms.priority) + " does not wait",
        queue_.sheddable, false);
  const auto until = std::min(request.ends_at.value_or(router::clock_point::max()), began + how_.queue.max_wait);
  router::waiting_line::request entry{candidates.model, std::string(terms.tenant), terms.priority, cost_of(request)};
  entry.due = terms.ttft ? began + *terms.ttft : request.ends_at;
  entry.until = until;
  const std::vector<std::string_view> exclude(request.exclude.begin(), request.exclude.end());
  const auto full_line =
      "the line is full: " + std::to_string(how_.queue.max_requests) + " requests wait for an engine";
  seat mine(room_);
  const auto position =
      mine.take(std::move(entry), {request.adapter, exclude, scheduler_->disaggregates()}, wake, door_);
  if (!position) co_return shed(full_line, queue_.full, false);
  queue_.length.Increment();
  const auto outcome = co_await wake.wait(until);
  queue_.length.Decrement();
  const auto waited = std::chrono::steady_clock::now() - began;
  const auto ms = std::to_string(std::chrono::duration_cast<std::chrono::milliseconds>(waited).count()) + " ms";
  if (outcome == waiter::outcome::cancelled) {
    queue_.left.Increment();
    co_return choice{};
  }
  if (!mine.told())
    co_return shed("waited too long: " + ms + ", and every engine is saturated still", queue_.too_long, true);
  if (*mine.told() == waiting_room::word::make_room)
    co_return shed(full_line + "; this one made room for another", queue_.full, true);
  queue_.released.Increment();
  queue_.wait.Observe(std::chrono::duration<double>(waited).count());
  // As things are now.
  const auto topology = topology_.shared();
  const auto* engines = topology ? topology->find(request.model) : nullptr;
  std::vector<std::string_view> full;
  if (engines) saturated_.append_full(*engines, shared_.facts->fleet.board(), std::chrono::steady_clock::now(), full);
  auto chosen = decide(request, engines, full);
  if (chosen.ranked.empty()) chosen = decide(request, engines, {});
  chosen.reason = "waited " + ms + " for an engine; " + chosen.reason;
  co_return chosen;
}

}  // namespace

std::unique_ptr<decider> make_route_embedded(gateway_shared& shared, http::worker& worker,
                                             std::shared_ptr<indexer::index_set> index) {
  return std::make_unique<route_embedded>(shared, worker, std::move(index));
}

}  // namespace infernex::gateway
