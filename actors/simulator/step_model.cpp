#include "actors/simulator/step_model.hpp"

#include <algorithm>
#include <utility>

namespace infernex::simulator {

double prefill_milliseconds(const step_costs& costs, std::uint64_t tokens) {
  if (tokens == 0) return 0;
  const auto t = static_cast<double>(tokens);
  return std::max(0.0, costs.prefill_quadratic * t * t + costs.prefill_linear * t + costs.prefill_constant);
}

double decode_milliseconds(const step_costs& costs, std::uint64_t active, std::uint64_t total) {
  const double p = total == 0 ? 1.0 : std::min(1.0, static_cast<double>(active) / static_cast<double>(total));
  return std::max(
      {0.0, costs.decode_floor, costs.decode_quadratic * p * p + costs.decode_linear * p + costs.decode_constant});
}

struct step_model::sequence {
  explicit sequence(sequence_request request)
      : id(request.id),
        tokens(std::move(request.prompt)),
        prompt_tokens(static_cast<std::uint32_t>(tokens.size())),
        max_tokens(request.max_tokens),
        min_tokens(request.min_tokens),
        ignore_eos(request.ignore_eos),
        salt(std::move(request.salt)),
        source(std::move(request.source)) {}

  std::uint32_t length() const { return static_cast<std::uint32_t>(tokens.size()); }
  bool decodes() const { return computed >= prefill_end; }

  sequence_id id;
  /// Prompt and answer so far.
  std::vector<token_id> tokens;
  std::uint32_t prompt_tokens;
  std::uint32_t max_tokens;
  std::uint32_t min_tokens;
  bool ignore_eos;
  std::string salt;
  generator source;

  std::vector<block_id> blocks;
  /// Leading tokens whose KV is there (or will be when the step ends), and how many of them the step adds.
  std::uint32_t computed = 0;
  std::uint32_t scheduled = 0;
  /// Tokens known when it last left the waiting queue: what it computes as prefill.
  std::uint32_t prefill_end = 0;
  /// Set when it first ran.
  std::optional<std::uint32_t> cached_tokens;
};

step_model::step_model(const settings& values, std::uint64_t hash_seed)
    : costs_(values.costs),
      context_length_(context_length(values)),
      max_num_seqs_(values.max_num_seqs),
      max_batched_tokens_(values.max_num_batched_tokens),
      max_waiting_(values.max_waiting),
      cache_(values.block_size, values.total_blocks, hash_seed) {}

step_model::~step_model() = default;

errc step_model::add(sequence_request request) {
  if (request.prompt.empty() || request.max_tokens == 0) return errc::invalid_request;
  if (request.prompt.size() + request.max_tokens > context_length_) return errc::invalid_request;
  // What a free slot will take in the next step does not count as waiting.
  if (waiting_.size() >= std::size_t{max_waiting_} + max_num_seqs_ - running_.size()) return errc::overloaded;
  auto made = std::make_unique<sequence>(std::move(request));
  auto* added = made.get();
  if (!sequences_.emplace(added->id, std::move(made)).second) return errc::invalid_request;
  waiting_.push_back(added);
  return errc::none;
}

void step_model::abort(sequence_id id) {
  const auto found = sequences_.find(id);
  if (found == sequences_.end()) return;
  cache_.release(found->second->blocks);
  std::erase(running_, found->second.get());
  std::erase(waiting_, found->second.get());
  sequences_.erase(found);
}

void step_model::preempt_last() {
  auto* one = running_.back();
  running_.pop_back();
  cache_.release(one->blocks);
  one->blocks.clear();
  one->computed = 0;
  one->scheduled = 0;
  waiting_.push_front(one);
  ++preemptions_;
}

void step_model::reset_prefix_cache() {
  while (!running_.empty()) preempt_last();
  cache_.clear();
}

void step_model::compute(sequence& one, std::uint32_t tokens) {
  const auto block = cache_.block_size();
  const auto first = one.computed / block;
  one.computed += tokens;
  one.scheduled = tokens;
  // As in vLLM a block can be reused from the moment it is scheduled to be filled: whoever reuses it runs
  // in the same step or later.
  cache_.seal(one.blocks, first, one.computed / block, one.tokens, one.salt);
}

bool step_model::schedule_running(sequence& one, std::uint64_t& budget, step_plan& plan, std::uint64_t& attended) {
  const auto tokens = static_cast<std::uint32_t>(std::min<std::uint64_t>(one.length() - one.computed, budget));
  if (tokens == 0) return true;
  const auto needed = (one.computed + tokens + cache_.block_size() - 1) / cache_.block_size();
  const auto missing = needed - std::min<std::size_t>(needed, one.blocks.size());
  while (!cache_.can_allocate(missing)) {
    const bool itself = running_.back() == &one;
    preempt_last();
    if (itself) return false;
  }
  cache_.allocate(missing, one.blocks);
  if (one.decodes()) {
    attended += one.length();
    ++plan.decoding;
  } else {
    plan.prefill_tokens += tokens;
  }
  budget -= tokens;
  compute(one, tokens);
  return true;
}

bool step_model::admit_waiting(std::uint64_t& budget, step_plan& plan) {
  auto& one = *waiting_.front();
  const auto reused = cache_.match(one.tokens, one.salt);
  const auto cached = static_cast<std::uint32_t>(reused.size()) * cache_.block_size();
  const auto tokens = static_cast<std::uint32_t>(std::min<std::uint64_t>(one.length() - cached, budget));
  const auto needed = (cached + tokens + cache_.block_size() - 1) / cache_.block_size() - reused.size();
  if (!cache_.can_allocate(needed, reused)) return false;
  cache_.hold(reused);
  one.blocks = reused;
  cache_.allocate(needed, one.blocks);
  one.computed = cached;
  one.prefill_end = one.length();
  if (!one.cached_tokens) {
    one.cached_tokens = cached;
    prefix_queries_ += one.length();
    prefix_hits_ += cached;
  }
  waiting_.pop_front();
  running_.push_back(&one);
  plan.prefill_tokens += tokens;
  budget -= tokens;
  compute(one, tokens);
  return true;
}

std::optional<step_plan> step_model::begin_step() {
  if (running_.empty() && waiting_.empty()) return std::nullopt;
  step_plan plan;
  std::uint64_t budget = max_batched_tokens_;
  std::uint64_t attended = 0;
  const auto preempted = preemptions_;
  for (auto* one : running_) one->scheduled = 0;
  // By index: a preemption shortens the list behind the sequence at hand.
  for (std::size_t i = 0; i < running_.size() && budget > 0; ++i) {
    if (!schedule_running(*running_[i], budget, plan, attended)) break;
  }
  while (preemptions_ == preempted && budget > 0 && !waiting_.empty() && running_.size() < max_num_seqs_) {
    if (!admit_waiting(budget, plan)) break;
  }
  plan.milliseconds = prefill_milliseconds(costs_, plan.prefill_tokens);
  if (plan.decoding > 0) {
    const auto total = std::uint64_t{cache_.capacity()} * cache_.block_size();
    plan.milliseconds += decode_milliseconds(costs_, attended, total);
  }
  return plan;
}

step_output step_model::end_step() {
  step_output output;
  const auto ran = running_;  // finished sequences leave the list
  for (auto* one : ran) {
    if (std::exchange(one->scheduled, 0) == 0 || one->computed < one->length()) continue;
    const auto answered = one->length() - one->prompt_tokens;
    const auto token = one->source.next(!one->ignore_eos && answered >= one->min_tokens);
    one->tokens.push_back(token);
    token_output made{one->id, token, std::nullopt, one->cached_tokens.value_or(0)};
    if (token == eos_token) {
      made.finish = finish_reason::stop;
    } else if (answered + 1 >= one->max_tokens) {
      made.finish = finish_reason::length;
    }
    output.tokens.push_back(made);
    if (made.finish) abort(one->id);
  }
  output.events = cache_.take_events();
  return output;
}

engine_load step_model::load() const {
  engine_load now;
  now.running = static_cast<std::uint32_t>(running_.size());
  now.waiting = static_cast<std::uint32_t>(waiting_.size());
  now.kv_usage = static_cast<double>(cache_.used()) / cache_.capacity();
  now.prefix_queries = prefix_queries_;
  now.prefix_hits = prefix_hits_;
  now.preemptions = preemptions_;
  return now;
}

}  // namespace infernex::simulator
