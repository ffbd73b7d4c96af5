#include "actors/router/life_totals.hpp"

#include <algorithm>
#include <limits>

#include "messages/view.hpp"

namespace infernex::router {

void life_totals::add(const std::string& model, const shares& totals, bool take_away,
                      std::vector<engine_name>& changed) {
  for (const auto& [instance, share] : totals) {
    engine_name engine{model, instance};
    auto& sum = sums_[engine];
    if (take_away) {
      sum.requests -= share.requests;
      sum.prefill_tokens -= share.prefill_tokens;
      sum.blocks -= share.blocks;
      if (sum.requests == 0 && sum.prefill_tokens == 0 && sum.blocks == 0) sums_.erase(engine);
    } else {
      sum.requests += share.requests;
      sum.prefill_tokens += share.prefill_tokens;
      sum.blocks += share.blocks;
    }
    changed.push_back(std::move(engine));
  }
}

std::vector<life_totals::engine_name> life_totals::replace(const fb::RequestLife& message, clock_point now,
                                                           bool& accepted) {
  std::vector<engine_name> changed;
  accepted = false;
  if (!message.origin() || !message.origin()->id()) return changed;
  const std::pair<std::string, std::string> name{text(message.origin()->id()), text(message.model())};
  auto it = gateways_.find(name);
  if (it == gateways_.end()) {
    if (gateways_.size() >= max_gateways_) return changed;
    it = gateways_.try_emplace(name).first;
  }
  auto& from = it->second;
  accepted = true;
  const auto epoch = message.origin()->epoch();
  const auto sequence = message.origin()->sequence();
  if (epoch < from.epoch || (epoch == from.epoch && sequence <= from.sequence)) return changed;
  shares next;
  if (const auto* in_flight = message.in_flight())
    for (const auto* one : *in_flight) {
      if (one->requests() == 0 && one->prefill_tokens() == 0 && one->blocks() == 0) continue;
      if (next.size() >= max_engines_) {
        accepted = false;
        break;
      }
      // Saturated here, so that sums of any number of gateways cannot overflow.
      const auto saturated = [](std::uint64_t value) {
        return std::min<std::uint64_t>(value, std::numeric_limits<std::uint32_t>::max());
      };
      next.insert_or_assign(std::string(text(one->instance())),
                            load_share{one->requests(), saturated(one->prefill_tokens()), saturated(one->blocks())});
    }
  add(name.second, from.totals, true, changed);
  add(name.second, next, false, changed);
  from = {epoch, sequence, now, std::move(next)};
  return changed;
}

std::vector<life_totals::engine_name> life_totals::expire(clock_point now, std::chrono::milliseconds silence) {
  std::vector<engine_name> changed;
  for (auto it = gateways_.begin(); it != gateways_.end();) {
    if (now - it->second.last_heard < silence) {
      ++it;
      continue;
    }
    add(it->first.second, it->second.totals, true, changed);
    it = gateways_.erase(it);
  }
  return changed;
}

void life_totals::touch(clock_point now) {
  for (auto& [name, from] : gateways_) from.last_heard = now;
}

load_share life_totals::sum(const engine_name& engine) const {
  const auto it = sums_.find(engine);
  if (it == sums_.end()) return {0, 0, 0};
  const auto requests = std::min<std::uint64_t>(it->second.requests, std::numeric_limits<std::uint32_t>::max());
  return {static_cast<std::uint32_t>(requests), it->second.prefill_tokens, it->second.blocks};
}

}  // namespace infernex::router
