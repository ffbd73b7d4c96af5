#include "actors/router/verdict_board.hpp"

#include <algorithm>

#include "messages/view.hpp"

namespace infernex::router {

namespace {

constexpr std::size_t max_node_bytes = 256;
constexpr std::size_t max_pattern_bytes = 128;

std::string render(const fb::Verdict& message, const fb::OpenVerdict* gravest) {
  std::string out(text(gravest ? gravest->pattern() : message.pattern()).substr(0, max_pattern_bytes));
  out += message.device() ? " on device " + std::to_string(*message.device()) + " of " : std::string(" on ");
  out += text(message.node());
  return out;
}

const fb::OpenVerdict* gravest_of(const fb::Verdict& message) {
  const fb::OpenVerdict* found = nullptr;
  if (message.open())
    for (const auto* one : *message.open())
      if (!found || one->action() > found->action()) found = one;
  return found;
}

}  // namespace

bool verdict_board::on_verdict(const fb::Verdict& message, clock_point now) {
  const auto node = text(message.node());
  if (!message.origin() || node.empty() || node.size() > max_node_bytes) {
    ++refused_;
    return false;
  }
  const auto device = message.device() ? std::optional<std::uint32_t>(*message.device()) : std::nullopt;
  const place at{std::string(node), device};
  const auto known = places_.find(at);
  const auto source = text(message.origin()->id());
  const auto epoch = message.origin()->epoch();
  const auto sequence = message.origin()->sequence();
  if (known != places_.end()) {
    // A later process speaks for its predecessor; of the same, what is older than what is known says nothing.
    const auto& k = known->second;
    if (epoch < k.epoch || (epoch == k.epoch && source == k.source && sequence != 0 && sequence <= k.sequence))
      return false;
  }
  const auto action = std::min(message.device_action(), fb::VerdictAction::Isolate);
  if (action == fb::VerdictAction::Ok) {
    if (known == places_.end()) return false;
    // Kept for its sequence until it is old: an earlier message may still be on its way.
    const bool changed = known->second.asked.action != fb::VerdictAction::Ok;
    known->second = {{}, std::string(source), epoch, sequence, now};
    return changed;
  }
  if (known == places_.end() && places_.size() >= most_) {
    ++refused_;
    return false;
  }
  const auto* gravest = gravest_of(message);
  asked_action asked{action, render(message, gravest), gravest ? gravest->since() : message.raised_at()};
  auto& entry = places_[at];
  const bool changed = entry.asked.action != asked.action || entry.asked.why != asked.why;
  entry = {std::move(asked), std::string(source), epoch, sequence, now};
  return changed;
}

bool verdict_board::on_tick(clock_point now) {
  bool changed = false;
  std::erase_if(places_, [&](const auto& one) {
    if (now - one.second.heard < silence_) return false;
    changed = changed || one.second.asked.action != fb::VerdictAction::Ok;
    return true;
  });
  return changed;
}

void verdict_board::touch(clock_point now) {
  for (auto& [at, one] : places_) one.heard = now;
}

const verdict_board::standing* verdict_board::find(std::string_view node, std::optional<std::uint32_t> device) const {
  const auto it = places_.find({std::string(node), device});
  return it == places_.end() ? nullptr : &it->second;
}

asked_action verdict_board::asked_of(std::string_view node, std::span<const std::uint32_t> devices) const {
  asked_action worst;
  if (node.empty() || places_.empty()) return worst;
  const auto weigh = [&](const standing* one) {
    if (one && one->asked.action > worst.action) worst = one->asked;
  };
  weigh(find(node, std::nullopt));
  for (const auto device : devices) weigh(find(node, device));
  return worst;
}

}  // namespace infernex::router
