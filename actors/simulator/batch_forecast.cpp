#include "actors/simulator/batch_forecast.hpp"

#include <algorithm>

namespace infernex::simulator {

std::uint64_t batch_forecast::copy(const batch_scheduler& of, std::uint32_t quiet_steps) {
  running_.clear();
  std::uint64_t free = of.cache_.capacity() - of.cache_.used();
  for (const auto slot : of.running_) {
    const auto& one = of.sequences_[slot];
    running now{one.length + quiet_steps,
                one.computed + quiet_steps,
                one.prefill_end,
                one.prompt_tokens + one.max_tokens,
                static_cast<std::uint32_t>(one.blocks.size()),
                false};
    // The end of the step at hand.
    if (one.scheduled != 0 && now.computed == now.length) ++now.length;
    if (now.length >= now.end) {
      free += now.blocks;
    } else {
      running_.push_back(now);
    }
  }
  return free;
}

std::uint32_t batch_forecast::reusable(const batch_scheduler& of, std::span<const block_name> names,
                                       std::uint32_t length, std::size_t waiting_before) {
  const auto chain = names.first(std::min<std::size_t>(names.size(), (length - 1) / of.cache_.block_size()));
  std::size_t found = of.cache_.matched(chain);
  // What those before it will have computed by then. Names are of whole prefixes.
  const auto extend = [&](sequence_slot slot) {
    const auto& by = of.sequences_[slot].chain;
    while (found < chain.size() && found < by.size() && by[found] == chain[found]) ++found;
  };
  for (const auto slot : of.running_)
    if (!of.sequences_[slot].decodes()) extend(slot);
  for (std::size_t i = 0; i < waiting_before; ++i) extend(of.waiting_[i]);
  return static_cast<std::uint32_t>(found);
}

std::uint32_t batch_forecast::expected_blocks(const batch_scheduler& of, std::size_t waiting) {
  const auto slot = of.waiting_[waiting];
  const auto& one = of.sequences_[slot];
  if (known_.size() <= slot) known_.resize(of.sequences_.size());
  auto& known = known_[slot];
  if (known.naming != one.naming) known = {one.naming, reusable(of, one.chain, one.length, waiting)};
  return known.blocks;
}

std::optional<batch_forecast::answer> batch_forecast::ask(const batch_scheduler& of, std::uint32_t quiet_steps,
                                                          const question& about) {
  const auto block = of.cache_.block_size();
  const auto own_cached = reusable(of, about.chain, about.prompt_tokens, of.waiting_.size());
  const auto uncached = about.kv_present ? 1 : about.prompt_tokens - own_cached * block;
  // No step that computes tokens of others too is shorter.
  if (!about.kv_present && unloaded_milliseconds(of.costs_, of.max_batched_tokens_, uncached) > about.limit_ms)
    return std::nullopt;
  auto free = copy(of, quiet_steps);
  double elapsed = 0;
  std::size_t next_waiting = 0;
  bool entered = false;
  while (elapsed <= about.limit_ms) {
    std::uint64_t budget = of.max_batched_tokens_;
    std::uint64_t prefill = 0;
    std::uint64_t attended = 0;
    std::uint32_t decoding = 0;
    const auto schedule = [&](running& one) {
      const auto tokens = static_cast<std::uint32_t>(std::min<std::uint64_t>(one.length - one.computed, budget));
      if (one.computed >= one.prefill_end) {
        attended += one.length;
        ++decoding;
      } else {
        prefill += tokens;
      }
      budget -= tokens;
      one.computed += tokens;
      const auto blocks = (one.computed + block - 1) / block;
      if (blocks > one.blocks) {
        free -= std::min<std::uint64_t>(free, blocks - one.blocks);
        one.blocks = blocks;
      }
    };
    for (auto& one : running_) schedule(one);
    const auto admit = [&](std::uint32_t length, std::uint32_t cached, std::uint32_t end, bool present, bool asked) {
      const auto held = present ? (length + block - 1) / block : cached;
      const auto first = present ? 0 : (std::min<std::uint64_t>(length - cached * block, budget) + block - 1) / block;
      // Cached blocks are free ones until they are held.
      if (held + first > free) return false;
      free -= held;
      running_.push_back(
          {length, present ? length - 1 : cached * block, present ? length - 1 : length, end, held, asked});
      schedule(running_.back());
      return true;
    };
    bool blocked = false;
    while (!blocked && budget > 0 && running_.size() < of.max_num_seqs_ && next_waiting < of.waiting_.size()) {
      const auto slot = of.waiting_[next_waiting];
      const auto& one = of.sequences_[slot];
      blocked = !admit(one.length, expected_blocks(of, next_waiting), one.prompt_tokens + one.max_tokens,
                       one.kv_present, false);
      if (!blocked) ++next_waiting;
    }
    if (!entered && next_waiting == of.waiting_.size() && budget > 0 && running_.size() < of.max_num_seqs_ &&
        elapsed >= about.after_ms)
      entered = admit(about.prompt_tokens, own_cached, ~0U, about.kv_present, true);
    if (decoding == 0 && prefill == 0) {
      // Nothing to do until it comes; if it has come, it will never find memory.
      if (entered || elapsed >= about.after_ms) return std::nullopt;
      elapsed = about.after_ms;
      continue;
    }
    elapsed += prefill_milliseconds(of.costs_, prefill);
    if (decoding != 0) elapsed += decode_milliseconds(of.costs_, attended, of.capacity_tokens());
    for (std::size_t i = 0; i < running_.size();) {
      auto& one = running_[i];
      if (one.computed == one.length) {
        if (one.asked) return answer{elapsed, uncached};
        if (++one.length >= one.end) {
          free += one.blocks;
          running_.erase(running_.begin() + static_cast<std::ptrdiff_t>(i));
          continue;
        }
      }
      ++i;
    }
  }
  return std::nullopt;
}

}  // namespace infernex::simulator
