#include "actors/router/request_queue.hpp"

#include <algorithm>
#include <map>
#include <set>

namespace infernex::router {

namespace {

/// Placed in one go, so that other messages get their turn.
constexpr int most_released_at_once = 256;

double ms_between(clock_point from, clock_point to) {
  return std::chrono::duration<double, std::milli>(to - from).count();
}

std::string readable(double ms) {
  if (ms < 10'000) return std::to_string(static_cast<std::int64_t>(ms)) + " ms";
  return std::to_string(static_cast<std::int64_t>(ms / 1'000)) + " s";
}

std::string id_of(std::string_view source, std::string_view request_id) {
  return std::string(source) + '\n' + std::string(request_id);
}

std::unique_ptr<fb::RouteChoiceT> choice_for(const fb::RouteItem& item, fb::Queueing how, std::string why) {
  auto out = std::make_unique<fb::RouteChoiceT>();
  out->request_id = text(item.request_id());
  out->key_mode = item.key_mode();
  out->block_size = item.block_size();
  out->prompt_tokens = item.prompt_tokens();
  out->queueing = how;
  out->reason = std::move(why);
  return out;
}

}  // namespace

/// Decides, item by item, who of a query waits.
class request_queue::asking final : public placer::gate {
 public:
  asking(request_queue& queue, const view<fb::RouteQuery>& query, const std::string& reply_to)
      : queue_(queue), query_(query), reply_to_(reply_to) {}

  std::unique_ptr<fb::RouteChoiceT> hold(const fb::RouteItem& item, const placement& request,
                                         const model_endpoints& candidates, const overlaps& cached, bool disaggregates,
                                         clock_point now) override {
    const engine_wanted wanted{request.adapter, request.exclude, disaggregates};
    const bool saturated = queue_.saturated_.everywhere(candidates, wanted, queue_.loads_, now);
    if (!saturated && !queue_.line_.waits_for(candidates.model)) return nullptr;
    // Nothing to wait for: it hears at once why nobody can take it.
    if (!saturated && !anyone_could_take(candidates, wanted)) return nullptr;
    return queue_.admit(*this, item, request, candidates, cached, saturated, now);
  }

  const std::shared_ptr<const held_query>& held() {
    if (!held_)
      held_ = std::make_shared<const held_query>(
          held_query{*view<fb::RouteQuery>::verify(chunk::copy_of(query_.data().bytes())), reply_to_,
                     std::string(query_->origin() ? text(query_->origin()->id()) : std::string_view{})});
    return held_;
  }
  /// The same item in the copy.
  const fb::RouteItem* held(const fb::RouteItem& item) {
    const auto offset = reinterpret_cast<const std::uint8_t*>(&item) - query_.data().bytes().data();
    return reinterpret_cast<const fb::RouteItem*>(held()->message.data().bytes().data() + offset);
  }

 private:
  request_queue& queue_;
  const view<fb::RouteQuery>& query_;
  const std::string& reply_to_;
  std::shared_ptr<const held_query> held_;
};

request_queue::request_queue(placer& places, const load_board& loads, const policy& how)
    : places_(places),
      loads_(loads),
      how_(how.queue),
      saturated_(how.queue.saturated),
      line_({how.queue.max_requests, how.queue.max_wait}) {}

fb::RouteDecisionT request_queue::place(const view<fb::RouteQuery>& query, const std::string& reply_to,
                                        const match_answer& cached, clock_point now) {
  // Who cannot be answered twice is answered once.
  if (!how_.enabled || query->explain() || reply_to.empty()) return places_.place(*query, cached, now);
  asking from(*this, query, reply_to);
  return places_.place(*query, cached, now, &from);
}

std::unique_ptr<fb::RouteChoiceT> request_queue::admit(asking& from, const fb::RouteItem& item,
                                                       const placement& request, const model_endpoints& candidates,
                                                       const overlaps& cached, bool saturated, clock_point now) {
  const std::string why = saturated ? "every engine is saturated" : "others wait for an engine already";
  const auto shed = [&](std::string reason) {
    auto out = choice_for(item, fb::Queueing::Shed, std::move(reason));
    out->retry_after_ms = retry_after_ms();
    return out;
  };
  if (request.priority < 0) {
    ++count_.sheddable;
    return shed(why + ", and a request of priority " + std::to_string(request.priority) + " does not wait");
  }
  const auto terms = terms_of(request.headers, how_);
  waiting_line::request entry{candidates.model, std::string(terms.tenant), request.priority, cost_of(request)};
  if (item.deadline_ms()) entry.until = now + std::chrono::milliseconds(*item.deadline_ms());
  entry.due = terms.ttft ? now + *terms.ttft : entry.until;
  const auto got = line_.admit(std::move(entry), now);
  const auto full = "the line is full: " + std::to_string(how_.max_requests) + " requests wait for an engine";
  if (!got.taken) {
    ++count_.full;
    return shed(full);
  }
  if (got.evicted) {
    ++count_.full;
    put_out(*got.evicted, full + "; this one made room for another", now);
  }
  waiter w{from.held(), from.held(item), candidates.model, {}, cached.known, std::string(cached.unknown_because), now};
  for (const auto& one : cached.found) w.cached.push_back({std::string(one.instance), one});
  w.position = line_.position(*got.taken);
  auto out = choice_for(item, fb::Queueing::Waiting, why + ": waits at place " + std::to_string(w.position));
  out->queue_position = static_cast<std::uint32_t>(w.position);
  out->engines = static_cast<std::uint32_t>(candidates.endpoints.size());
  by_id_.emplace(id_of(w.query->source, request.request_id), *got.taken);
  waiters_.emplace(*got.taken, std::move(w));
  return out;
}

std::vector<request_queue::later> request_queue::release(clock_point now) {
  if (line_.size() != 0)
    for (const auto& model : line_.models()) release_of(model, now);
  return take_answers();
}

bool request_queue::can_go(ticket who, const model_endpoints* engines, clock_point now) {
  if (!engines || engines->ready_count() == 0) return true;  // and hears why
  const auto& item = *waiters_.at(who).item;
  std::vector<std::string_view> exclude;
  if (item.exclude())
    for (const auto* instance : *item.exclude()) exclude.push_back(text(instance));
  return saturated_.room_somewhere(*engines, {text(item.adapter()), exclude, places_.disaggregates()}, loads_, now);
}

void request_queue::release_of(const std::string& model, clock_point now) {
  for (int n = 0; n < most_released_at_once; ++n) {
    const auto* engines = places_.find(model);
    std::vector<std::string_view> full;
    if (engines) saturated_.append_full(*engines, loads_, now, full);
    if (engines && engines->ready_count() != 0 && full.size() == engines->endpoints.size()) return;
    const auto who = line_.next(model, [&](ticket one) { return can_go(one, engines, now); });
    if (!who) return;
    const auto w = take(*who);
    std::vector<overlap> found;
    for (const auto& one : w.cached) {
      found.push_back(one.blocks);
      found.back().instance = one.instance;
    }
    const overlaps cached{w.known, w.unknown_because, found, {}};
    auto choice = places_.place_waiting(*w.item, model, cached, now, full);
    // Filters of the policy that leave saturated engines only: they would not have let it wait either.
    if (choice->instance.empty()) choice = places_.place_waiting(*w.item, model, cached, now, {});
    const auto waited = ms_between(w.since, now);
    wait_ms_ = count_.released == 0 ? waited : 0.9 * wait_ms_ + 0.1 * waited;
    ++count_.released;
    choice->queueing = fb::Queueing::Released;
    choice->queued_ms = waited;
    choice->queue_position = static_cast<std::uint32_t>(w.position);
    choice->reason = "waited " + readable(waited) + " for an engine; " + choice->reason;
    answer(w, std::move(choice));
  }
}

std::vector<request_queue::later> request_queue::on_tick(clock_point now) {
  for (const auto who : line_.expire(now)) {
    ++count_.too_long;
    const auto waited = readable(ms_between(waiters_.at(who).since, now));
    put_out(who, "waited too long: " + waited + ", and every engine is saturated still", now);
  }
  auto out = release(now);
  if (line_.size() == 0 || now < next_sign_) return out;
  next_sign_ = now + sign_interval;
  give_signs(now);
  for (auto& sign : take_answers()) out.push_back(std::move(sign));
  return out;
}

void request_queue::on_life(const fb::RequestLife& message) {
  if (by_id_.empty() || !message.finished() || !message.origin()) return;
  for (const auto* one : *message.finished()) {
    // Others end at their engine, or were turned away: they are not the one that waits here, but its client may have
    // given them the same id.
    if (one->outcome() != fb::Outcome::ClientGone && one->outcome() != fb::Outcome::TimedOut) continue;
    const auto found = by_id_.find(id_of(text(message.origin()->id()), text(one->request_id())));
    if (found == by_id_.end()) continue;
    const auto who = found->second;
    line_.leave(who);
    take(who);
    ++count_.left;
  }
}

std::vector<std::string> request_queue::abandon() {
  std::set<std::string> whom;
  while (!waiters_.empty()) {
    const auto who = waiters_.begin()->first;
    line_.leave(who);
    whom.insert(take(who).query->reply_to);
  }
  return {whom.begin(), whom.end()};
}

void request_queue::put_out(ticket who, std::string why, clock_point now) {
  const auto w = take(who);
  auto choice = choice_for(*w.item, fb::Queueing::Shed, std::move(why));
  choice->queue_position = static_cast<std::uint32_t>(w.position);
  choice->queued_ms = ms_between(w.since, now);
  choice->retry_after_ms = retry_after_ms();
  answer(w, std::move(choice));
}

void request_queue::give_signs(clock_point now) {
  std::map<const held_query*, later> by_query;
  for (const auto& [who, w] : waiters_) {
    auto& to = by_query[w.query.get()];
    to.reply_to = w.query->reply_to;
    to.answer.model = w.model;
    auto choice = choice_for(*w.item, fb::Queueing::Waiting, "every engine is saturated still");
    choice->queue_position = static_cast<std::uint32_t>(w.position);
    choice->queued_ms = ms_between(w.since, now);
    to.answer.choices.push_back(std::move(choice));
  }
  for (auto& [query, sign] : by_query) answers_.push_back(std::move(sign));
}

void request_queue::answer(const waiter& to, std::unique_ptr<fb::RouteChoiceT> with) {
  auto& one = answers_.emplace_back();
  one.reply_to = to.query->reply_to;
  one.answer.model = to.model;
  one.answer.choices.push_back(std::move(with));
}

/// Out of the books; the line has let go of it already.
request_queue::waiter request_queue::take(ticket who) {
  const auto it = waiters_.find(who);
  auto w = std::move(it->second);
  waiters_.erase(it);
  const auto [from, to] = by_id_.equal_range(id_of(w.query->source, text(w.item->request_id())));
  by_id_.erase(std::find_if(from, to, [who](const auto& e) { return e.second == who; }));
  return w;
}

std::vector<request_queue::later> request_queue::take_answers() { return std::exchange(answers_, {}); }

/// About as long as others wait: by then the line has moved on.
std::uint32_t request_queue::retry_after_ms() const {
  return static_cast<std::uint32_t>(std::clamp(wait_ms_, 1'000.0, std::max(1'000.0, double(how_.max_wait.count()))));
}

}  // namespace infernex::router
