#include "actors/simulator/batch_scheduler.hpp"

#include <algorithm>
#include <limits>
#include <utility>

namespace infernex::simulator {

double prefill_milliseconds(const step_costs& costs, std::uint64_t tokens) {
  if (tokens == 0) return 0;
  const auto t = static_cast<double>(tokens);
  return std::max(0.0, costs.prefill_quadratic * t * t + costs.prefill_linear * t + costs.prefill_constant);
}

double unloaded_milliseconds(const step_costs& costs, std::uint32_t max_batched_tokens, std::uint32_t tokens) {
  return tokens / max_batched_tokens * prefill_milliseconds(costs, max_batched_tokens) +
         prefill_milliseconds(costs, tokens % max_batched_tokens);
}

double decode_milliseconds(const step_costs& costs, std::uint64_t active, std::uint64_t total) {
  const double p = total == 0 ? 1.0 : std::min(1.0, static_cast<double>(active) / static_cast<double>(total));
  return std::max(
      {0.0, costs.decode_floor, costs.decode_quadratic * p * p + costs.decode_linear * p + costs.decode_constant});
}

batch_scheduler::batch_scheduler(const settings& values)
    : costs_(values.costs),
      context_length_(context_length(values)),
      max_num_seqs_(values.max_num_seqs),
      max_batched_tokens_(values.max_num_batched_tokens),
      max_waiting_(values.max_waiting),
      cache_(values.block_size, values.total_blocks) {}

errc batch_scheduler::add(const sequence_shape& shape, sequence_slot& slot) {
  if (shape.prompt_tokens == 0 || shape.max_tokens == 0) return errc::invalid_request;
  if (std::uint64_t{shape.prompt_tokens} + shape.max_tokens > context_length_) return errc::invalid_request;
  // What a free slot will take in the next step does not count as waiting.
  if (waiting_.size() >= std::size_t{max_waiting_} + max_num_seqs_ - running_.size()) return errc::overloaded;
  if (unused_.empty()) {
    slot = static_cast<sequence_slot>(sequences_.size());
    sequences_.emplace_back();
  } else {
    slot = unused_.back();
    unused_.pop_back();
  }
  auto& one = sequences_[slot];
  one.id = shape.id;
  one.prompt_tokens = one.length = shape.prompt_tokens;
  one.max_tokens = shape.max_tokens;
  one.computed = one.scheduled = one.prefill_end = 0;
  one.cached_tokens.reset();
  one.kv_present = shape.kv_present;
  one.remote_tokens = shape.remote_tokens;
  one.naming = shape.naming;
  one.blocks.clear();
  one.chain.assign(shape.chain.begin(), shape.chain.end());
  waiting_.push_back(slot);
  return errc::none;
}

void batch_scheduler::leave(sequence_slot slot) {
  if (std::erase(running_, slot) == 0) std::erase(waiting_, slot);
  head_blocked_ = false;
  unused_.push_back(slot);
}

void batch_scheduler::finish(sequence_slot slot) {
  cache_.release(sequences_[slot].blocks);
  sequences_[slot].blocks.clear();
  leave(slot);
}

std::vector<block_id> batch_scheduler::detach(sequence_slot slot) {
  leave(slot);
  return std::exchange(sequences_[slot].blocks, {});
}

bool batch_scheduler::reserve(std::span<const block_name> chain, std::vector<block_id>& blocks, std::uint32_t& cached) {
  blocks.clear();
  cache_.match(chain, blocks);
  cached = static_cast<std::uint32_t>(blocks.size());
  const auto missing = chain.size() - blocks.size();
  if (!cache_.can_allocate(missing, blocks)) {
    blocks.clear();
    return false;
  }
  cache_.hold(blocks);
  cache_.allocate(missing, blocks);
  return true;
}

void batch_scheduler::release(std::span<const block_id> blocks) {
  cache_.release(blocks);
  head_blocked_ = false;
}

void batch_scheduler::preempt_last() {
  const auto slot = running_.back();
  auto& one = sequences_[slot];
  running_.pop_back();
  cache_.release(one.blocks);
  one.blocks.clear();
  one.computed = 0;
  one.scheduled = 0;
  waiting_.push_front(slot);
  preempted_.push_back(slot);
  head_blocked_ = false;
  ++preemptions_;
}

void batch_scheduler::reset_prefix_cache() {
  while (!running_.empty()) preempt_last();
  cache_.clear();
}

void batch_scheduler::extend_names(sequence& one, std::size_t blocks) {
  // A bijection of the index for each number, far from those of other numbers.
  while (one.naming != 0 && one.chain.size() < blocks)
    one.chain.push_back((one.naming + 0x9E3779B97F4A7C15ULL * (one.chain.size() + 1)) * 0xD6E8FEB86659FD93ULL);
}

void batch_scheduler::compute(sequence& one, std::uint32_t tokens) {
  const auto block = cache_.block_size();
  const auto first = one.computed / block;
  one.computed += tokens;
  one.scheduled = tokens;
  const auto last = one.computed / block;
  if (first == last) return;
  extend_names(one, last);
  // As in vLLM a block can be reused from the moment it is scheduled to be filled: whoever reuses it runs
  // in the same step or later.
  cache_.seal(one.id, one.blocks, first, last, one.chain);
}

bool batch_scheduler::schedule_running(sequence_slot slot, std::uint64_t& budget, step_plan& plan,
                                       std::uint64_t& attended) {
  auto& one = sequences_[slot];
  const auto tokens = static_cast<std::uint32_t>(std::min<std::uint64_t>(one.length - one.computed, budget));
  if (tokens == 0) return true;
  const auto needed = (one.computed + tokens + cache_.block_size() - 1) / cache_.block_size();
  const auto missing = needed - std::min<std::size_t>(needed, one.blocks.size());
  if (missing != 0) {
    while (!cache_.can_allocate(missing)) {
      const bool itself = running_.back() == slot;
      preempt_last();
      if (itself) return false;
    }
    cache_.allocate(missing, one.blocks);
  }
  one.decoding = one.decodes();
  if (one.decoding) {
    attended += one.length;
    ++plan.decoding;
  } else {
    plan.prefill_tokens += tokens;
  }
  budget -= tokens;
  compute(one, tokens);
  return true;
}

bool batch_scheduler::admit_waiting(std::uint64_t& budget, step_plan& plan, std::uint64_t& attended) {
  const auto slot = waiting_.front();
  auto& one = sequences_[slot];
  const auto block = cache_.block_size();
  // The last token is always computed, since its output is what is asked for.
  const std::size_t reusable = (one.length - 1) / block;
  extend_names(one, reusable);
  reused_.clear();
  cache_.match(std::span(one.chain).first(std::min(reusable, one.chain.size())), reused_);
  const auto cached = static_cast<std::uint32_t>(reused_.size()) * block;
  const auto fills = one.kv_present ? one.length - cached
                                    : static_cast<std::uint32_t>(std::min<std::uint64_t>(one.length - cached, budget));
  const auto needed = (cached + fills + block - 1) / block - reused_.size();
  if (!cache_.can_allocate(needed, reused_)) {
    head_blocked_ = true;
    return false;
  }
  cache_.hold(reused_);
  one.blocks.assign(reused_.begin(), reused_.end());
  cache_.allocate(needed, one.blocks);
  one.computed = cached;
  one.prefill_end = one.length;
  if (!one.cached_tokens) {
    one.cached_tokens = cached;
    prefix_queries_ += one.length;
    const auto remote = std::min(one.remote_tokens, cached);
    prefix_hits_ += cached - remote;
    if (remote > 0) external_queries_ += one.length - (cached - remote);
    external_hits_ += remote;
  }
  waiting_.pop_front();
  running_.push_back(slot);
  one.decoding = std::exchange(one.kv_present, false);
  if (one.decoding) {
    attended += one.length;
    ++plan.decoding;
    --budget;
  } else {
    plan.prefill_tokens += fills;
    budget -= fills;
  }
  compute(one, fills);
  return true;
}

std::optional<step_plan> batch_scheduler::begin_step() {
  preempted_.clear();
  head_blocked_ = false;
  if (running_.empty() && waiting_.empty()) return std::nullopt;
  step_plan plan;
  std::uint64_t budget = max_batched_tokens_;
  std::uint64_t attended = 0;
  for (const auto slot : running_) sequences_[slot].scheduled = 0;
  // By index: a preemption shortens the list behind the sequence at hand.
  for (std::size_t i = 0; i < running_.size() && budget > 0; ++i) {
    if (!schedule_running(running_[i], budget, plan, attended)) break;
  }
  while (preempted_.empty() && budget > 0 && !waiting_.empty() && running_.size() < max_num_seqs_) {
    if (!admit_waiting(budget, plan, attended)) break;
  }
  plan.milliseconds = prefill_milliseconds(costs_, plan.prefill_tokens);
  if (plan.decoding > 0) plan.milliseconds += decode_milliseconds(costs_, attended, capacity_tokens());
  return plan;
}

std::span<const made_token> batch_scheduler::end_step() {
  made_.clear();
  for (const auto slot : running_) {
    auto& one = sequences_[slot];
    if (std::exchange(one.scheduled, 0) == 0 || one.computed < one.length) continue;
    const auto answered = ++one.length - one.prompt_tokens;
    made_.push_back({one.id, slot, answered, answered >= one.max_tokens, one.decoding, one.cached_tokens.value_or(0)});
  }
  return made_;
}

quiet_run batch_scheduler::quiet() const {
  quiet_run found;
  const auto decoding = running_.size();
  if (decoding == 0) return found;
  // Of those that wait, none may be admitted.
  if (!waiting_.empty() && !head_blocked_ && decoding < max_num_seqs_ && decoding < max_batched_tokens_) return found;
  const auto block = cache_.block_size();
  auto steps = std::numeric_limits<std::uint32_t>::max();
  for (const auto slot : running_) {
    const auto& one = sequences_[slot];
    if (one.computed + 1 != one.length || !one.decodes()) return found;
    // A block is taken by the step after a full one, and named by the step that fills it.
    const auto in_block = one.length % block;
    steps = std::min(steps, in_block <= 1 ? 0 : block - in_block);
    steps = std::min(steps, one.prompt_tokens + one.max_tokens - one.length - 1);
    found.attended += one.length;
  }
  found.steps = steps;
  found.decoding = static_cast<std::uint32_t>(decoding);
  return found;
}

void batch_scheduler::advance(std::uint32_t steps) {
  for (const auto slot : running_) {
    sequences_[slot].length += steps;
    sequences_[slot].computed += steps;
  }
}

engine_load batch_scheduler::load() const {
  engine_load now;
  now.running = static_cast<std::uint32_t>(running_.size());
  now.waiting = static_cast<std::uint32_t>(waiting_.size());
  now.kv_usage = static_cast<double>(cache_.used()) / cache_.capacity();
  now.prefix_queries = prefix_queries_;
  now.prefix_hits = prefix_hits_;
  now.preemptions = preemptions_;
  now.external_queries = external_queries_;
  now.external_hits = external_hits_;
  return now;
}

}  // namespace infernex::simulator
