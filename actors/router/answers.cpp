#include "actors/router/answers.hpp"

#include <algorithm>

#include "actors/runtime/log.hpp"

namespace infernex::router {

std::unique_ptr<fb::OriginT> answers::next_origin() {
  auto origin = std::make_unique<fb::OriginT>();
  origin->id = facts_->source_id;
  origin->epoch = facts_->epoch;
  origin->sequence = ++facts_->sequence;
  return origin;
}

void answers::send(const std::string& reply_to, fb::RouteDecisionT& answer) {
  answer.origin = next_origin();
  const auto sent = messages_.reply_to(reply_to, message_traits<fb::RouteDecision>::root, encode(answer));
  if (sent == errc::none) return;
  static log::limiter failures;
  if (const auto repeated = failures.admit())
    log::warn("route decision not sent", {{"error", name(sent)}, {"repeated", repeated}});
}

void answers::give(const inbound<fb::RouteQuery>& query, const match_result* found, std::string unknown_because) {
  auto& metrics = facts_->metrics;
  const auto began = std::chrono::steady_clock::now();
  const match_answer cached{found ? &**found->answer : nullptr, std::move(unknown_because)};
  auto decided = facts_->queue.place(query.message, query.reply_to, cached, began);
  const std::chrono::duration<double> took = std::chrono::steady_clock::now() - began;
  metrics.decide_seconds.Observe(took.count());
  for (auto& choice : decided.choices) {
    choice->decide_us = took.count() * 1e6 / static_cast<double>(decided.choices.size());
    if (!query.message->explain()) metrics.count(*choice);
  }
  send(query.reply_to, decided);
  if (query.message->explain()) return;
  decided_.add(std::move(decided));
  // Who had to make room for one of these, and who may go where one of these may not.
  if (facts_->queue.waiting() != 0) give(facts_->queue.release(std::chrono::steady_clock::now()));
  if (decided_.size() >= decision_batch::full) publish();
}

void answers::give(std::vector<request_queue::later> later) {
  for (auto& one : later) {
    send(one.reply_to, one.answer);
    for (const auto& choice : one.answer.choices) facts_->metrics.count(*choice);
    // That one still waits is no decision.
    if (one.answer.choices.front()->queueing != fb::Queueing::Waiting) decided_.add(std::move(one.answer));
  }
  if (decided_.size() >= decision_batch::full) publish();
}

void answers::refuse(const std::string& reply_to, errc why) {
  facts_->metrics.queries_refused.Increment();
  messages_.refuse(reply_to, why);
}

void answers::publish() {
  if (decided_.size() == 0) return;
  for (auto& batch : decided_.take()) {
    batch.origin = next_origin();
    if (messages_.publish(messages_.names().route_decision(batch.model), encode(batch)) != errc::none)
      facts_->metrics.decisions_unpublished.Increment(static_cast<double>(batch.choices.size()));
  }
}

}  // namespace infernex::router
