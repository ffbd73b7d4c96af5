#include "gateway/hand.hpp"

#include <algorithm>
#include <random>

#include <boost/asio/post.hpp>

namespace infernex::gateway {
namespace {

constexpr std::chrono::milliseconds batch_time{5};
constexpr std::size_t max_batch = 4096;

}  // namespace

hand::hand(gateway_shared& all, http::worker& on, std::unique_ptr<decider> decides)
    : shared(all),
      worker(on),
      metrics(all.process.metrics),
      keys(all.how.tokens.cache_bytes / std::max(1U, all.how.threads)),
      backoff(all.how.backoff_first, all.how.backoff_most),
      route(std::move(decides)),
      topology_(all.facts->fleet.topologies()),
      headers_(all.headers),
      random_((std::uint64_t{std::random_device{}()} << 32) | std::random_device{}()) {}

std::string hand::new_request_id() {
  // The random part tells threads and processes apart, the counter requests.
  static constexpr char hex[] = "0123456789abcdef";
  std::string id = "ix-";
  for (int shift = 60; shift >= 0; shift -= 4) id += hex[(random_ >> shift) & 15];
  return id += '-' + std::to_string(++requests_);
}

void hand::note(life_change change) {
  if (closed_) return;
  events_.changes.push_back(std::move(change));
  send_soon();
}

void hand::note(life_finish finish) {
  if (closed_) return;
  events_.finished.push_back(std::move(finish));
  send_soon();
}

void hand::note(routed_prompt prompt) {
  if (closed_) return;
  events_.routed.push_back(std::move(prompt));
  if (sending_next_) return;
  sending_next_ = true;
  // Behind what else this turn of the loop decides.
  http::asio::post(worker.context(), [this] {
    sending_next_ = false;
    send_now();
  });
}

void hand::send_soon() {
  if (events_.changes.size() + events_.finished.size() >= max_batch) return send_now();
  if (sending_) return;
  sending_ = true;
  // The timer hangs on its own wait, not on this object: it goes with the io_context, before this does.
  auto timer = std::make_shared<worker_timer>(worker.context().get_executor(), batch_time);
  timer->async_wait([this, timer](const boost::system::error_code& problem) {
    sending_ = false;
    if (!problem) send_now();
  });
}

void hand::send_now() {
  if (events_.empty()) return;
  if (shared.facts->inbox.put(std::exchange(events_, {}))) shared.actor.send(life_waiting{});
}

void hand::close() {
  closed_ = true;
  route->close();
  shared.facts->inbox.put(std::exchange(events_, {}));
}

placed_request::placed_request(hand& at, const router::model_endpoints& model, const route_request& request,
                               const candidate& to)
    : at_(at), model_(model.model), instance_(to.instance) {
  const auto share = share_of(request, to.expected_blocks());
  prefill_tokens_ = share.prefill_tokens;
  blocks_ = share.blocks;
  for (const auto& endpoint : model.endpoints) {
    if (endpoint.instance != to.instance) continue;
    met_ = router::conditions_of(at_.board(), endpoint.slot, share, std::chrono::steady_clock::now());
    at_.board().reserve(endpoint.slot, share);
  }
  at_.note(life_change{model_, instance_, 1, static_cast<std::int64_t>(prefill_tokens_),
                       static_cast<std::int64_t>(blocks_), request.request_id});
  if (at_.predicts() && !request.keys.empty())
    at_.note(routed_prompt{request.request_id, model_, instance_, request.key_mode, request.keys});
}

void placed_request::prefilled() {
  if (prefill_tokens_ == 0) return;
  if (met_) at_.board().unreserve(met_->slot, {0, prefill_tokens_});
  at_.note(life_change{model_, instance_, 0, -static_cast<std::int64_t>(prefill_tokens_), 0, {}});
  prefill_tokens_ = 0;
}

placed_request::~placed_request() {
  if (met_) at_.board().unreserve(met_->slot, {1, prefill_tokens_, blocks_});
  at_.note(life_change{
      model_, instance_, -1, -static_cast<std::int64_t>(prefill_tokens_), -static_cast<std::int64_t>(blocks_), {}});
}

}  // namespace infernex::gateway
