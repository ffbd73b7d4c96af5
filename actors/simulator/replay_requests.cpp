// The requests of a replay_world, from arrival to end.

#include <algorithm>
#include <utility>

#include "actors/simulator/replay_world.hpp"

namespace infernex::simulator {

void replay_world::arrive(std::size_t index) {
  if (unused_.empty()) {
    unused_.push_back(static_cast<std::uint32_t>(open_.size()));
    open_.emplace_back();
  }
  const auto open = unused_.back();
  unused_.pop_back();
  ++open_count_;
  auto& one = open_[open];
  one.traced = trace_.get(index, one.blocks);
  one.prompt_tokens = one.traced.prompt_tokens;
  one.answered = 0;
  one.begun = false;
  one.told.id = index;
  one.told.moved = false;
  const auto drawn = mixed(settings_.seed * 0x9E3779B97F4A7C15ULL + index + 1);
  one.gateway = static_cast<std::uint32_t>(drawn) % settings_.gateways;
  one.router = settings_.router_affinity ? 0 : static_cast<std::uint32_t>(drawn >> 32) % settings_.routers;
  statistics_.arrived(index, now_ms_);
  place(open);
}

std::span<const block_name> replay_world::full_blocks(const request& one) const {
  const auto full = one.traced.prompt_tokens / trace_.block_tokens();
  return one.traced.blocks.first(std::min<std::size_t>(full, one.traced.blocks.size()));
}

void replay_world::place(std::uint32_t open) {
  auto& one = open_[open];
  one.told = {.id = one.told.id,
              .prompt_tokens = one.prompt_tokens,
              .answered = one.answered,
              .placed_ms = now_ms_,
              .moved = one.told.moved};
  one.at = stage::none;
  news_.deliver(now_ms_);
  const auto choice = routers_[one.router]->place({.id = one.told.id,
                                                   .prompt_tokens = one.prompt_tokens,
                                                   .output_tokens = one.traced.output_tokens - one.answered,
                                                   .blocks = full_blocks(one),
                                                   .tenant = one.traced.tenant,
                                                   .priority = one.traced.priority,
                                                   .session = one.traced.session},
                                                  now_ms_);
  if (!choice) return refuse(open);
  one.told.choice = *choice;
  one.at = choice->decode ? stage::prefill : stage::decode;
  news_.progress(replay_news::step::placed, one.told, one.gateway, one.router, now_ms_);
  enter(open, choice->engine);
}

void replay_world::enter(std::uint32_t open, std::uint32_t engine) {
  auto& one = open_[open];
  const sequence_shape shape{.id = open,
                             .prompt_tokens = one.prompt_tokens,
                             .max_tokens = one.at == stage::prefill ? 1 : one.traced.output_tokens - one.answered,
                             .chain = full_blocks(one),
                             .naming = mixed(one.told.id + 1),
                             .kv_present = one.at == stage::decode && one.told.choice.decode.has_value()};
  if (!states_.at(engine).up || engines_[engine]->add(shape, now_ms_, *this, one.slot) != errc::none)
    return refuse(open);
  follow(engine);
}

void replay_world::refuse(std::uint32_t open) {
  auto& one = open_[open];
  if (one.begun) {
    statistics_.failed(one.told.id, now_ms_);
  } else {
    statistics_.shed(one.told.id, now_ms_);
  }
  const bool placed = one.at != stage::none;
  end(open, now_ms_, placed);
}

void replay_world::end(std::uint32_t open, double at_ms, bool placed) {
  auto& one = open_[open];
  one.told.ended_ms = at_ms;
  if (placed) news_.progress(replay_news::step::ended, one.told, one.gateway, one.router, at_ms);
  one.at = stage::none;
  unused_.push_back(open);
  --open_count_;
}

void replay_world::on_token(const made_token& made, double at_ms) {
  const auto open = static_cast<std::uint32_t>(made.id);
  auto& one = open_[open];
  const auto computed = [&] {
    one.told.cached_tokens = made.cached_tokens;
    one.told.prefilled_ms = at_ms;
    news_.progress(replay_news::step::prefilled, one.told, one.gateway, one.router, at_ms);
  };
  if (one.at == stage::prefill) {
    computed();
    one.at = stage::transfer;
    const auto block = trace_.block_tokens();
    const auto there = engines_[*one.told.choice.decode]->scheduler().cache().matched(full_blocks(one)) * block;
    one.lands_ms = at_ms + transfer_ms(one.prompt_tokens - there);
    push({one.lands_ms, rank::landing, open});
    return;
  }
  one.told.answered = one.answered + made.answered;
  if (made.answered == 1) {
    one.told.first_token_ms = at_ms;
    if (!one.told.choice.decode) computed();
    if (std::exchange(one.begun, true)) {
      statistics_.tokens(1, at_ms - one.lost_ms, at_ms);
    } else {
      statistics_.first_token(one.told.id, at_ms + settings_.network_ms, one.prompt_tokens, one.told.cached_tokens,
                              unloaded(one.prompt_tokens));
    }
  }
  if (!made.at_limit) return;
  statistics_.finished(one.told.id, at_ms + settings_.network_ms, one.told.answered);
  end(open, at_ms, true);
}

void replay_world::replace_all(std::uint32_t engine) {
  for (std::uint32_t open = 0; open < open_.size(); ++open) {
    auto& one = open_[open];
    if (one.at == stage::none) continue;
    const auto decode = one.told.choice.decode.value_or(one.told.choice.engine);
    // Until its KV has arrived, the prefill engine has it.
    const bool lost = decode == engine || (one.at != stage::decode && one.told.choice.engine == engine);
    if (!lost) continue;
    const auto in = one.at == stage::prefill ? one.told.choice.engine : decode;
    if (one.at != stage::transfer) {
      const auto more = one.at == stage::decode ? engines_[in]->answered(one.slot, now_ms_, *this) : 0;
      engines_[in]->finish(one.slot, now_ms_, *this);
      follow(in);
      one.answered += more;
      one.prompt_tokens += more;
      // As if the last token had come just then: the engine's step that did not end is part of the gap only in so far.
      if (more != 0) one.lost_ms = now_ms_;
    }
    one.told.ended_ms = now_ms_;
    one.told.moved = true;
    news_.progress(replay_news::step::ended, one.told, one.gateway, one.router, now_ms_);
    place(open);
  }
}

}  // namespace infernex::simulator
