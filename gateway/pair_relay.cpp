#include "gateway/pair_relay.hpp"

#include "gateway/headers.hpp"
#include "gateway/routing_headers.hpp"

namespace infernex::gateway {
namespace {

/// The exchange's way back to the client, which watches the answer go by as relay_stream does, and follows the request
/// from pair to pair.
class pair_way_back final : public http::responder, public pair_listener {
 public:
  pair_way_back(session& s, const candidate& first) : s_(s), first_(first) {}

  void on_pair(std::string_view prefill, std::string_view decode) override {
    refresh_topology(s_);
    place_.reset();
    const bool as_routed =
        !tried_ && !first_.group_prefills && prefill == first_.prefill_instance && decode == first_.instance;
    candidate other;
    if (!as_routed) {
      other.instance = decode;
      other.prefill_instance = prefill;
      s_.decision += "; now at " + std::string(prefill) + (prefill.empty() ? "" : " and ") + std::string(decode);
      // What the router expected, and what is to be learned of its choice, is of no use any more.
      ++s_.attempt;
      s_.expected_blocks.reset();
      s_.by_prediction = false;
    }
    tried_ = true;
    place_.emplace(s_.at, *s_.model, s_.where, as_routed ? first_ : other);
    s_.instance = decode;
    s_.prefill_instance = prefill;
    s_.met = as_routed ? place_->met() : std::nullopt;
    s_.met_at_prefill = as_routed ? place_->met_at_prefill() : std::nullopt;
    generating_ = false;
  }
  void on_prefilled() override {
    if (place_ && !s_.prefill_instance.empty()) place_->prefilled();
  }

  http::task<bool> send(unsigned status, std::string_view type, std::string_view body, http::fields extra) override {
    // Engines outside the group may still do better.
    if (status == 502 || status == 503) return keep_back(status);
    s_.status = status;
    s_.deadline.cancel();
    if (status == 200) s_.used = find_usage(body);
    return s_.out.send(status, type, body, with_own(std::move(extra)));
  }
  http::task<bool> start_stream(unsigned status, std::string_view type, http::fields extra) override {
    s_.status = status;
    s_.deadline.cancel();
    return s_.out.start_stream(status, type, with_own(std::move(extra)));
  }
  http::task<bool> write(std::string_view bytes) override {
    scan_.feed(bytes);
    if (!generating_ && place_ && scan_.first_token()) {
      generating_ = true;
      s_.ttft ? place_->prefilled() : note_first_token(s_, *place_);
    }
    return s_.out.write(bytes);
  }
  http::task<bool> end_stream() override { return s_.out.end_stream(); }
  void abort() override { s_.out.abort(); }
  bool started() const override { return s_.out.started(); }
  bool client_gone() const override { return s_.out.client_gone(); }
  void on_client_gone(std::function<void()> gone) override {
    s_.also_gone = std::move(gone);
    if (s_.also_gone && s_.client_gone) s_.also_gone();
  }

  usage used() const { return scan_.last_usage(); }
  bool kept_back() const { return kept_back_; }

 private:
  http::task<bool> keep_back(unsigned status) {
    kept_back_ = true;
    s_.status = status;
    co_return true;
  }
  http::fields with_own(http::fields headers) const {
    set_header(headers, {"x-infernex-endpoint", header_line(s_.instance)});
    set_header(headers, {"x-infernex-decision", header_line(s_.decision)});
    add_session_tokens(headers, s_.at.headers(), s_.instance);
    return headers;
  }

  session& s_;
  const candidate& first_;
  std::optional<placed_request> place_;
  stream_scan scan_;
  bool tried_ = false;
  /// The present pair's text has begun to come.
  bool generating_ = false;
  bool kept_back_ = false;
};

/// However it ends: nobody else is told that the client has gone.
struct forget_call_back {
  session& s;
  ~forget_call_back() { s.also_gone = {}; }
};

}  // namespace

http::task<pair_relayed> relay_pair(session& s, const candidate& to, std::string_view upstream_path) {
  pair_way_back way(s, to);
  const forget_call_back unregister{s};
  const auto target = upstream_target(s, upstream_path);
  auto result = co_await s.at.pairs->run(s.kind, to, target, s.request_id, s.in, way, way);
  pair_relayed out;
  out.unusable = std::move(result.unusable);
  if (!out.unusable.empty()) co_return out;
  if (!result.bad_body.empty()) {
    out.how = {false, {}, answer{400, std::move(result.bad_body), "invalid_request", {}, {}}};
    co_return out;
  }
  s.client_gone = s.client_gone || result.client_gone;
  if (way.kept_back() && !s.client_gone) {
    s.status = 0;
    s.pair_story = "and other pairs of PD group " + to.pd_group + " could not answer: " + result.story;
    out.how = {false, s.pair_story, {}, false};
    co_return out;
  }
  if (s.out.started() && !s.used.prompt_tokens) s.used = way.used();
  if (!result.failed) {
    s.outcome = fb::Outcome::Completed;
  } else if (s.status == 504) {
    s.outcome = fb::Outcome::TimedOut;
  } else {
    s.outcome = fb::Outcome::EngineFailed;
    if (s.out.started() && !s.client_gone) s.at.metrics.broken_streams.Increment();
  }
  co_return out;
}

}  // namespace infernex::gateway
