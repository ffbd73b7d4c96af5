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
      pairs(all.facts->pairs ? all.facts->pairs->for_thread(on) : nullptr),
      topology_(all.facts->fleet.topologies()),
      headers_(all.headers),
      proxies_(all.facts->proxies),
      random_((std::uint64_t{std::random_device{}()} << 32) | std::random_device{}()) {}

std::string hand::proxy_of(std::string_view group) {
  const auto* all = proxies_.get();
  if (!all) return {};
  const auto found = all->find(group);
  return found == all->end() ? std::string{} : found->second;
}

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
    : at_(at), model_(model.model) {
  const auto share = share_of(request, to.expected_blocks());
  if (to.pair()) prefills_ = stake_at(model, to.prefill_instance, share);
  answers_ = stake_at(model, to.instance, to.prefills_itself() ? share : router::load_share{1, 0, share.blocks});
  put(prefills_, {});
  put(answers_, request.request_id);
  if (at_.predicts() && !request.keys.empty() && !to.group_prefills)
    at_.note(routed_prompt{request.request_id, model_, to.pair() ? to.prefill_instance : to.instance, request.key_mode,
                           request.keys});
}

placed_request::stake placed_request::stake_at(const router::model_endpoints& model, const std::string& instance,
                                               router::load_share share) {
  stake out{instance, {}, share};
  if (const auto* endpoint = model.find(instance))
    out.met = router::conditions_of(at_.board(), endpoint->slot, share, std::chrono::steady_clock::now());
  return out;
}

void placed_request::put(const stake& what, const std::string& started) {
  if (what.instance.empty()) return;
  if (what.met) at_.board().reserve(what.met->slot, what.share);
  at_.note(life_change{model_, what.instance, static_cast<std::int32_t>(what.share.requests),
                       static_cast<std::int64_t>(what.share.prefill_tokens),
                       static_cast<std::int64_t>(what.share.blocks), started});
}

void placed_request::take(stake& what, router::load_share share) {
  if (what.instance.empty()) return;
  if (what.met) at_.board().unreserve(what.met->slot, share);
  at_.note(life_change{model_,
                       what.instance,
                       -static_cast<std::int32_t>(share.requests),
                       -static_cast<std::int64_t>(share.prefill_tokens),
                       -static_cast<std::int64_t>(share.blocks),
                       {}});
  what.share.requests -= share.requests;
  what.share.prefill_tokens -= share.prefill_tokens;
  what.share.blocks -= share.blocks;
  if (what.share.requests == 0) what.instance.clear();
}

void placed_request::prefilled() {
  take(prefills_, prefills_.share);
  if (answers_.share.prefill_tokens != 0) take(answers_, {0, answers_.share.prefill_tokens, 0});
}

placed_request::~placed_request() {
  take(prefills_, prefills_.share);
  take(answers_, answers_.share);
}

}  // namespace infernex::gateway
