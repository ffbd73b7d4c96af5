#include "actors/proxy/in_process.hpp"

namespace infernex::proxy {
namespace {

/// The group as if it had none but the engines that are named, so that only their own state and breakers count. One
/// that has just refused a connection is not to be run into again.
group_view named_part(const group_view& group, const named_request& what) {
  group_view part;
  std::string_view decode;
  for (const auto& m : group.members) {
    const bool decodes = m.role == fb::EngineRole::Decode;
    const bool wanted = decodes ? m.engine.instance == what.decode
                                : !what.alone && (what.prefill.empty() || m.engine.instance == what.prefill);
    if (!wanted || m.load->refuses.load(std::memory_order_relaxed)) continue;
    if (decodes) decode = m.engine.address;
    part.members.push_back(m);
  }
  std::copy_if(group.pairs.begin(), group.pairs.end(), std::back_inserter(part.pairs),
               [&](const auto& p) { return p.decode == decode; });
  return part;
}

/// The engines that were named, and after a failure the group's pair of least load.
class named_pairs final : public pair_source {
 public:
  named_pairs(in_process::thread& at, named_request what, std::size_t prompt_bytes, pair_listener& heard)
      : at_(at), named_(std::move(what)), group_(named_.group), prompt_bytes_(prompt_bytes), heard_(&heard) {}

  http::task<std::variant<chosen_pair, no_pair>> choose(const action::choose_pair& wish) override {
    const auto view = at_.view(group_);
    if (!view) co_return no_pair{"PD group " + group_ + " is not there any more"};
    const named_pair nobody;
    if (!std::exchange(begun_, true)) {
      const auto part = named_part(*view, named_);
      if (named_.alone) {
        if (auto alone = choose_alone(part, nobody, prompt_bytes_)) co_return *std::move(alone);
      } else {
        auto named = proxy::choose(part, wish, nobody, prompt_bytes_, false);
        if (std::holds_alternative<chosen_pair>(named)) co_return named;
      }
    }
    co_return proxy::choose(*view, wish, nobody, prompt_bytes_, at_.all().local_prefill());
  }

  void report(const action::report& what) override {
    if (const auto now = what.refused ? at_.view(group_) : nullptr) note_refusal(*now, what);
    if (!what.pair.prefill) return;
    const auto& prefill = what.pair.prefill->address;
    const auto& decode = what.pair.decode.address;
    // That a pair works is news only where it has failed.
    const auto view = what.worked ? at_.view(group_) : nullptr;
    if (what.worked && (!view || !view->has_failed(prefill, decode))) return;
    at_.all().on_outcome(group_, prefill, decode, what.worked);
  }

  void on_taken(const engine_pair& pair) override {
    if (heard_) heard_->on_pair(pair.prefill ? pair.prefill->instance : std::string_view{}, pair.decode.instance);
  }
  void on_prefilled() override {
    if (heard_) heard_->on_prefilled();
  }
  /// What still runs for the request runs unheard.
  void ended() { heard_ = nullptr; }

 private:
  in_process::thread& at_;
  const named_request named_;
  const std::string& group_;
  const std::size_t prompt_bytes_;
  pair_listener* heard_;
  bool begun_ = false;
};

/// Also when the coroutine is destroyed where it waits.
struct end_hearing {
  named_pairs& pairs;
  ~end_hearing() { pairs.ended(); }
};

}  // namespace

in_process::in_process(metrics_registry& metrics, settings how)
    : how_(std::move(how)),
      metrics_(metrics),
      openings_(metrics.counter("infernex_proxy_breaker_openings_total", "Pairs put aside after failures in a row")),
      refused_announcements_(metrics.counter("infernex_proxy_announcements_refused_total",
                                             "Announcements without a usable address, or over the bound of engines")) {}

void in_process::on_announce(const fb::EngineAnnounce& engine, clock_point now) {
  const auto name = text(engine.pd_group());
  if (name.empty() || engine.role() == fb::EngineRole::Aggregated) return;
  const std::lock_guard lock(guard_);
  auto known = groups_.find(name);
  if (known == groups_.end()) {
    if (groups_.size() >= how_.max_groups) {
      ++refused_before_;
      return count_locked();
    }
    auto own = how_.group;
    own.name = name;
    known = groups_.emplace(name, group(std::move(own))).first;
  }
  if (known->second.on_announce(engine, now)) publish_locked(known->first, known->second);
  count_locked();
}

void in_process::on_tick(clock_point now, bool bus_is_there) {
  const std::lock_guard lock(guard_);
  for (auto it = groups_.begin(); it != groups_.end();) {
    auto& [name, members] = *it;
    if (members.on_tick(now, bus_is_there)) publish_locked(name, members);
    const auto shown = latest_.find(name);
    // Not shown: all that was announced of it was refused.
    if (shown != latest_.end() && !shown->second->members.empty()) {
      ++it;
      continue;
    }
    opened_before_ += members.breakers().opened();
    refused_before_ += members.refused();
    if (shown != latest_.end()) {
      latest_.erase(shown);
      views_.publish(std::make_shared<const group_views>(latest_));
    }
    it = groups_.erase(it);
  }
  count_locked();
}

void in_process::on_outcome(const std::string& group, const std::string& prefill, const std::string& decode,
                            bool worked) {
  const std::lock_guard lock(guard_);
  const auto known = groups_.find(group);
  if (known == groups_.end()) return;
  if (known->second.on_outcome(prefill, decode, worked, std::chrono::steady_clock::now()))
    publish_locked(known->first, known->second);
  count_locked();
}

void in_process::publish_locked(const std::string& name, group& changed) {
  latest_.insert_or_assign(name, changed.view());
  views_.publish(std::make_shared<const group_views>(latest_));
}

void in_process::count_locked() {
  auto opened = opened_before_, refused = refused_before_;
  for (const auto& [name, members] : groups_) {
    opened += members.breakers().opened();
    refused += members.refused();
  }
  catch_up(openings_, static_cast<double>(opened));
  catch_up(refused_announcements_, static_cast<double>(refused));
}

void in_process::reached_at(std::string url) {
  if (reachable_) return;
  url_ = std::move(url);
  reachable_.store(true, std::memory_order_release);
}

http::task<void> in_process::serve_metaserver(http::worker& on, http::request& in, http::responder& out) {
  co_await meta_.serve(on, in, out, how_.exchange.prefill_timeout + how_.exchange.connect_timeout);
}

std::shared_ptr<const group_view> in_process::thread::view(std::string_view group) {
  const auto* all = views_.get();
  if (!all) return nullptr;
  const auto found = all->find(group);
  return found == all->end() ? nullptr : found->second;
}

http::task<named_result> in_process::thread::run(named_request what, http::request& in, http::responder& out,
                                                 pair_listener& heard) {
  const auto began = std::chrono::steady_clock::now();
  named_result result;
  const auto known = view(what.group);
  const auto member = [&known](std::string_view instance) {
    return known && std::any_of(known->members.begin(), known->members.end(),
                                [&](const auto& m) { return m.engine.instance == instance; });
  };
  if ((!what.prefill.empty() && !member(what.prefill)) || !member(what.decode)) {
    result.unknown =
        "does not hold " + std::string(what.prefill.empty() ? "the engine" : "the pair") + ", by its announcements";
    co_return result;
  }
  auto facts = read_request(what.kind, in.body);
  if (!facts) {
    result.bad_body = facts.failure().detail;
    co_return result;
  }
  exchange_plan plan;
  plan.facts = *std::move(facts);
  plan.target = std::move(what.target);
  plan.request_id = std::move(what.request_id);
  const auto pairs = std::make_shared<named_pairs>(*this, std::move(what), in.body.size(), heard);
  const end_hearing hears{*pairs};
  plan.pairs = pairs;
  plan.how = &all_.how_.exchange;
  plan.metrics = &all_.metrics_;
  plan.bootstraps = &bootstraps_;
  if (all_.reachable_.load(std::memory_order_acquire)) {
    plan.meta = &all_.meta_;
    plan.metaserver_url = all_.url_ + "/v1/metaserver";
  }
  plan.began = began;
  result.ended = co_await run_exchange(std::move(plan), on_, in, out);
  co_return result;
}

}  // namespace infernex::proxy
