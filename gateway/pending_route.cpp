#include "gateway/pending_route.hpp"

#include "gateway/placing.hpp"

namespace infernex::gateway {

namespace {

void give(pending_route& to, result<choice> answer) {
  if (to.abandoned) return;
  if (answer && answer->waits)
    to.queued = true;  // and is woken to wait on
  else
    to.answer = std::move(answer);
  to.wake->notify();
}

bool waits(const pending_route& p) { return !p.abandoned && p.queued && !p.answer; }

}  // namespace

void deliver(const pending_batch& batch, const result<view<fb::RouteDecision>>& answer) {
  const auto* choices = answer ? (*answer)->choices() : nullptr;
  for (std::size_t i = 0; i < batch.size(); ++i) {
    auto& p = *batch[i];
    if (p.abandoned) continue;
    if (!answer)
      give(p, answer.failure());
    else if (choices && i < choices->size() && text(choices->Get(i)->request_id()) == p.request->request_id)
      give(p, to_choice(*choices->Get(i)));
    else
      give(p, error{errc::malformed_input, "the router answered another question"});
  }
}

bool someone_waits(const pending_batch& batch) {
  return std::any_of(batch.begin(), batch.end(), [](const auto& p) { return waits(*p); });
}

void deliver_later(const pending_batch& batch, const result<view<fb::RouteDecision>>& answer) {
  if (!answer) {
    for (const auto& p : batch)
      if (waits(*p)) give(*p, answer.failure());
    return;
  }
  if (!(*answer)->choices()) return;
  for (const auto* said : *(*answer)->choices()) {
    const auto p = std::find_if(batch.begin(), batch.end(), [&](const auto& one) {
      return waits(*one) && one->request->request_id == text(said->request_id());
    });
    if (p != batch.end()) give(**p, to_choice(*said));
  }
}

}  // namespace infernex::gateway
