#include "gateway/route_by_bus.hpp"

#include <algorithm>
#include <map>
#include <random>
#include <vector>

#include <boost/asio/post.hpp>

#include "actors/runtime/log.hpp"
#include "gateway/door.hpp"
#include "gateway/pending_route.hpp"
#include "gateway/placing.hpp"
#include "gateway/router_breaker.hpp"

namespace infernex::gateway {
namespace {

constexpr std::size_t max_items = 64;
constexpr std::size_t max_bytes = 768 << 10;
/// A router that did not answer is not asked by name for so long. It has ended, or hangs: either way its announcements
/// stop, but are remembered for a while.
constexpr std::chrono::seconds forget_gone_after{5};
/// For an answer's way from the bus's threads here.
constexpr std::chrono::milliseconds margin{50};
/// Routers asked one after the other, each of which went away while the request waited in its queue.
constexpr unsigned most_queues = 3;
constexpr std::string_view lost = "the router in whose queue it waited is gone";

class route_by_bus final : public decider {
 public:
  route_by_bus(gateway_shared& shared, http::worker& worker)
      : shared_(shared),
        worker_(worker),
        door_(std::make_shared<door>(worker.context())),
        without_router_(router::make_scheduler(router::spec_without_cache(shared.how.policy), std::random_device{}())),
        breaker_(shared.how.breaker, shared.how.route_timeout),
        routers_(shared.facts->router_names),
        skipped_(shared.process.metrics.counter("infernex_gateway_route_skipped_total",
                                                "Requests for which a router that keeps silent was not asked")),
        lost_(shared.process.metrics.counter("infernex_gateway_route_lost_total",
                                             "Requests that waited in the queue of a router that went away")),
        pauses_(shared.process.metrics.counter("infernex_gateway_route_pauses_total",
                                               "Times that a silent router ceased to be asked, on one thread")) {}

  http::task<choice> choose(const route_request& request, std::shared_ptr<const router::topology> topology,
                            waiter& wake) override;
  void close() override { door_->close(); }

 private:
  void flush();
  void send(const std::string& model, pending_batch batch);
  /// The router that is to be asked by name; null: whichever takes the query.
  const std::string* router_of(const std::string& model);
  using shared_query = std::shared_ptr<const flatbuffers::DetachedBuffer>;
  /// `router` empty: whichever takes it.
  void put(const shared_query& query, const std::string& model, const std::string& router, pending_batch batch);
  void note_silence(const std::string& router, errc why);
  std::string why_not(const result<choice>& answer) const;
  static bool lost_in_queue(const result<choice>& answer) { return !answer && answer.failure().detail == lost; }
  http::task<std::optional<result<choice>>> ask(const route_request& request, waiter& wake, router_breaker::leave with);
  void learn(const result<choice>& answer, router_breaker::leave with);

  gateway_shared& shared_;
  http::worker& worker_;
  std::shared_ptr<door> door_;
  pending_batch queue_;
  bool flush_posted_ = false;
  /// Decides where no router does.
  std::unique_ptr<router::scheduler> without_router_;
  router_breaker breaker_;
  published<std::vector<std::string>>::reader routers_;
  /// The router that was last found to be gone, and until when it is not asked by name.
  std::string gone_;
  router::clock_point gone_until_;
  prometheus::Counter& skipped_;
  prometheus::Counter& lost_;
  prometheus::Counter& pauses_;
};

http::task<choice> route_by_bus::choose(const route_request& request, std::shared_ptr<const router::topology> topology,
                                        waiter& wake) {
  const auto* candidates = topology ? topology->find(request.model) : nullptr;
  std::string why = "the bus is down";
  if (shared_.process.messages.connected()) {
    const auto leave = breaker_.may_ask(std::chrono::steady_clock::now());
    if (leave == router_breaker::leave::skip) {
      skipped_.Increment();
      why = "routers keep silent and are not asked for a while";
    } else {
      auto answer = co_await ask(request, wake, leave);
      // The router in whose queue it waited is gone: there may be another.
      for (unsigned again = 0; answer && lost_in_queue(*answer) && again < most_queues; ++again) {
        lost_.Increment();
        answer = co_await ask(request, wake, router_breaker::leave::ask);
      }
      if (!answer) co_return choice{};
      if (*answer && (*answer)->shed) co_return std::move(**answer);
      // A router that has just started knows fewer engines than we do.
      if (*answer && (!(*answer)->ranked.empty() || !someone_ready(request, candidates))) co_return std::move(**answer);
      why = why_not(*answer);
    }
  }
  co_return place_by_load(request, candidates, shared_.facts->fleet.board(), *without_router_,
                          std::chrono::steady_clock::now(), why);
}

/// Empty: the request was cancelled.
http::task<std::optional<result<choice>>> route_by_bus::ask(const route_request& request, waiter& wake,
                                                            router_breaker::leave with) {
  const abandon_at_end waiting{std::make_shared<pending_route>(pending_route{&request, &wake, {}, false})};
  queue_.push_back(waiting.pending);
  if (!flush_posted_) {
    flush_posted_ = true;
    http::asio::post(worker_.context(), [this] { flush(); });
  }
  // The bus keeps the time-out.
  auto outcome = co_await wake.wait(std::chrono::steady_clock::now() + shared_.how.route_timeout + margin);
  auto& answer = waiting.pending->answer;
  const bool queued = waiting.pending->queued;
  if (queued) learn(choice{}, with);
  while (waiting.pending->queued && !answer && outcome == waiter::outcome::notified)
    outcome = co_await wake.wait(std::chrono::steady_clock::now() + router_silence + margin);
  if (outcome == waiter::outcome::cancelled) {
    if (!queued) breaker_.gave_up(with);
    co_return std::nullopt;
  }
  if (!answer) answer = error{errc::timed_out, {}};
  if (waiting.pending->queued && !*answer) answer = error{answer->failure().code, std::string(lost)};
  if (!queued) learn(*answer, with);
  co_return std::move(answer);
}

/// Whether routers are silent.
void route_by_bus::learn(const result<choice>& answer, router_breaker::leave with) {
  static log::limiter lines(std::chrono::seconds(1));
  const auto now = std::chrono::steady_clock::now();
  if (answer || answer.failure().code != errc::timed_out) {
    if (breaker_.answered() && lines.admit(now)) log::info("routers answer again");
  } else if (breaker_.timed_out(with, now)) {
    pauses_.Increment();
    if (const auto repeated = lines.admit(now))
      log::warn("routers keep silent: requests are placed by load without asking them", {{"repeated", repeated}});
  }
}

std::string route_by_bus::why_not(const result<choice>& answer) const {
  if (lost_in_queue(answer)) return std::string(lost);
  if (answer) return "router named no engine (" + answer->reason + ")";
  switch (answer.failure().code) {
    case errc::timed_out:
      return "router did not answer in " + std::to_string(shared_.how.route_timeout.count()) + " ms";
    case errc::unreachable:
      return "no router is on the bus";
    default:
      return "router: " + std::string(name(answer.failure().code));
  }
}

void route_by_bus::flush() {
  flush_posted_ = false;
  std::map<std::string, std::pair<pending_batch, std::size_t>> open;
  for (auto& pending : std::exchange(queue_, {})) {
    if (pending->abandoned) continue;
    const auto bytes = query_bytes(*pending->request);
    const auto model = pending->request->model;
    auto& [batch, size] = open[model];
    if (!batch.empty() && (batch.size() >= max_items || size + bytes > max_bytes)) {
      send(model, std::exchange(batch, {}));
      size = 0;
    }
    size += bytes;
    batch.push_back(std::move(pending));
  }
  for (auto& [model, batch] : open) send(model, std::move(batch.first));
}

void route_by_bus::send(const std::string& model, pending_batch batch) {
  std::vector<const route_request*> items;
  for (const auto& pending : batch) items.push_back(pending->request);
  const auto* router = router_of(model);
  put(std::make_shared<const flatbuffers::DetachedBuffer>(encode_route_query(
          shared_.source, shared_.process.epoch, ++shared_.queries, model, items, std::chrono::steady_clock::now())),
      model, router ? *router : std::string{}, std::move(batch));
}

void route_by_bus::put(const shared_query& query, const std::string& model, const std::string& router,
                       pending_batch batch) {
  auto& bus = shared_.process.messages;
  const auto to = router.empty() ? bus.names().route_query(model) : bus.names().route_query_of(model, router);
  bus.converse<fb::RouteDecision>(to, *query, shared_.how.route_timeout,
                                  [this, way = door_, query, model, router, batch = std::move(batch),
                                   talk = conversation{}](result<view<fb::RouteDecision>>&& answer) mutable {
                                    const bool first = talk.first();
                                    const auto listen_on = talk.after(answer);
                                    way->post([this, query, model, router, batch, first, answer = std::move(answer)] {
                                      if (!answer && (first || someone_waits(batch)))
                                        note_silence(router, answer.failure().code);
                                      // Nobody has it: there is time left to ask another.
                                      const bool nobody = !answer && answer.failure().code == errc::unreachable;
                                      if (first && nobody && !router.empty()) return put(query, model, {}, batch);
                                      first ? deliver(batch, answer) : deliver_later(batch, answer);
                                    });
                                    return listen_on;
                                  });
}

void route_by_bus::note_silence(const std::string& router, errc why) {
  if (router.empty() || (why != errc::unreachable && why != errc::timed_out)) return;
  gone_ = router;
  gone_until_ = std::chrono::steady_clock::now() + forget_gone_after;
}

const std::string* route_by_bus::router_of(const std::string& model) {
  const auto* routers = shared_.how.router_affinity ? routers_.get() : nullptr;
  if (!routers) return nullptr;
  if (!gone_.empty() && std::chrono::steady_clock::now() >= gone_until_) gone_.clear();
  return router_for(*routers, model, gone_);
}

}  // namespace

std::unique_ptr<decider> make_route_by_bus(gateway_shared& shared, http::worker& worker) {
  return std::make_unique<route_by_bus>(shared, worker);
}

}  // namespace infernex::gateway
