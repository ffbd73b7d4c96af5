#include "actors/proxy/hand.hpp"

namespace infernex::proxy {
namespace {

class group_pairs final : public pair_source {
 public:
  group_pairs(hand& at, named_pair named, std::size_t prompt_bytes)
      : at_(at), named_(std::move(named)), prompt_bytes_(prompt_bytes) {}

  http::task<std::variant<chosen_pair, no_pair>> choose(const action::choose_pair& wish) override {
    const auto view = at_.view();
    if (!std::exchange(begun_, true) && named_.alone) {
      if (auto alone = choose_alone(*view, named_, prompt_bytes_)) co_return *std::move(alone);
    }
    co_return proxy::choose(*view, wish, named_, prompt_bytes_, at_.shared.how.exchange.tries.local_prefill);
  }

  void report(const action::report& what) override {
    if (what.refused) note_refusal(*at_.view(), what);
    if (!what.pair.prefill) return;
    const auto& prefill = what.pair.prefill->address;
    const auto& decode = what.pair.decode.address;
    // That a pair works is news only where it has failed.
    if (what.worked && !at_.view()->has_failed(prefill, decode)) return;
    at_.shared.actor.send(std::make_shared<const pair_outcome>(pair_outcome{prefill, decode, what.worked}));
  }

 private:
  hand& at_;
  named_pair named_;
  std::size_t prompt_bytes_;
  bool begun_ = false;
};

/// Counts a request in flight while it lives, if there is room.
class admission {
 public:
  explicit admission(proxy_shared& shared) : in_flight_(shared.facts->in_flight) {
    admitted_ = in_flight_.fetch_add(1) < shared.how.max_in_flight;
  }
  admission(const admission&) = delete;
  ~admission() { in_flight_.fetch_sub(1); }
  bool admitted() const { return admitted_; }

 private:
  std::atomic<std::uint32_t>& in_flight_;
  bool admitted_;
};

bool usable_request_id(std::string_view id) {
  return !id.empty() && id.size() <= 128 &&
         std::all_of(id.begin(), id.end(), [](char c) { return c > 0x20 && c < 0x7f; });
}

}  // namespace

std::shared_ptr<pair_source> make_group_pairs(hand& at, named_pair named, std::size_t prompt_bytes) {
  return std::make_shared<group_pairs>(at, std::move(named), prompt_bytes);
}

http::task<void> serve_completion(hand& at, api kind, http::request& in, http::responder& out) {
  auto& shared = at.shared;
  const admission admitted(shared);
  const auto refused = [&shared] { shared.metrics.requests(outcome::refused).Increment(); };
  if (!admitted.admitted()) {
    refused();
    co_return co_await send_error(
        out, 429,
        "The proxy is answering " + std::to_string(shared.how.max_in_flight) + " requests already, its limit.",
        "too_many_requests");
  }
  auto facts = read_request(kind, in.body);
  if (!facts) {
    refused();
    co_return co_await send_error(out, 400, facts.failure().detail, "invalid_request");
  }
  auto named =
      read_names(http::find(in.headers, "x-prefiller-host-port"), http::find(in.headers, "x-decoder-host-port"));
  if (const auto stranger = stranger_of(*at.view(), named); !stranger.empty()) {
    refused();
    co_return co_await send_error(out, 403, stranger.substr(0, 100) + " is not in this proxy's group.", "not_in_group");
  }
  exchange_plan plan;
  plan.facts = *std::move(facts);
  plan.target = in.target;
  const auto given = http::find(in.headers, "x-request-id");
  plan.request_id = usable_request_id(given) ? std::string(given) : std::string();
  plan.pairs = make_group_pairs(at, std::move(named), in.body.size());
  plan.how = &shared.how.exchange;
  plan.metrics = &shared.metrics;
  plan.bootstraps = &at.bootstraps;
  plan.meta = &shared.meta;
  plan.metaserver_url = shared.facts->url() + "/v1/metaserver";
  const auto result = co_await run_exchange(std::move(plan), at.worker, in, out);
  auto& totals = *shared.facts;
  if (result.how == outcome::answered || result.how == outcome::refused) ++totals.answered;
  if (result.how == outcome::failed) ++totals.failed;
  if (result.prefilled_locally) ++totals.prefilled_locally;
  totals.migrated += result.migrations;
}

http::task<void> send_error(http::responder& out, unsigned status, std::string message, std::string code) {
  const auto body = http::openai_error(status, message, code);
  http::fields extra;
  if (status == 429 || status == 503) extra.push_back({"Retry-After", "1"});
  co_await out.send(status, "application/json", body, std::move(extra));
}

}  // namespace infernex::proxy
