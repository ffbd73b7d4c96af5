#include "actors/simulator/step_model.hpp"

#include <algorithm>
#include <utility>

#include <xxhash.h>

namespace infernex::simulator {

step_model::step_model(const settings& values, std::uint64_t hash_seed) : hash_seed_(hash_seed), scheduler_(values) {}

void step_model::hash_full_blocks(sequence& one) const {
  const std::size_t block = block_size();
  auto parent =
      one.hashes.empty() ? XXH3_64bits_withSeed(one.salt.data(), one.salt.size(), hash_seed_) : one.hashes.back();
  while ((one.hashes.size() + 1) * block <= one.tokens.size()) {
    const auto* first = one.tokens.data() + one.hashes.size() * block;
    parent = XXH3_64bits_withSeed(first, block * sizeof *first, parent);
    one.hashes.push_back(parent);
  }
}

errc step_model::add(sequence_request request) {
  if (sequences_.contains(request.id)) return errc::invalid_request;
  sequence fresh{0,
                 std::move(request.prompt),
                 {},
                 request.min_tokens,
                 request.ignore_eos,
                 std::move(request.salt),
                 std::move(request.source),
                 std::nullopt};
  if (request.hold) fresh.hold_blocks = fresh.tokens.size() / block_size();
  hash_full_blocks(fresh);
  const auto failed = scheduler_.add({.id = request.id,
                                      .prompt_tokens = static_cast<std::uint32_t>(fresh.tokens.size()),
                                      .max_tokens = request.max_tokens,
                                      .chain = fresh.hashes,
                                      .remote_tokens = request.remote_tokens},
                                     fresh.slot);
  if (failed == errc::none) sequences_.emplace(request.id, std::move(fresh));
  return failed;
}

void step_model::abort(sequence_id id) {
  const auto found = sequences_.find(id);
  if (found == sequences_.end()) return;
  tell_changes();  // which may be of its tokens
  scheduler_.finish(found->second.slot);
  sequences_.erase(found);
}

const step_model::sequence& step_model::owner(sequence_id id) const {
  const auto found = sequences_.find(id);
  return found != sequences_.end() ? found->second : *held_.at(id).waits;
}

void step_model::hold(sequence_id id) {
  tell_changes();
  const auto found = sequences_.find(id);
  auto blocks = scheduler_.detach(found->second.slot);
  const auto whole = std::min(*found->second.hold_blocks, blocks.size());
  scheduler_.release(std::span(blocks).subspan(whole));
  blocks.resize(whole);
  held_.emplace(id, reservation{{std::move(blocks), 0}, std::nullopt});
  sequences_.erase(found);
}

const block_hold* step_model::reserve(sequence_id id, std::vector<token_id> prompt, std::string salt) {
  sequence waiting{0, std::move(prompt), {}, 0, false, std::move(salt), generator::echo({}), std::nullopt};
  hash_full_blocks(waiting);
  const auto needed = waiting.tokens.empty() ? 0 : (waiting.tokens.size() - 1) / block_size();
  block_hold made;
  if (!scheduler_.reserve(std::span(waiting.hashes).first(needed), made.blocks, made.cached)) return nullptr;
  return &held_.emplace(id, reservation{std::move(made), std::move(waiting)}).first->second.hold;
}

void step_model::fill(sequence_id reserved) {
  const auto found = held_.find(reserved);
  if (found == held_.end() || !found->second.waits) return;
  const auto& [hold, waits] = found->second;
  scheduler_.fill(reserved, hold.blocks, hold.cached, waits->hashes);
}

const block_hold* step_model::held(sequence_id id) const {
  const auto found = held_.find(id);
  return found == held_.end() ? nullptr : &found->second.hold;
}

void step_model::release(sequence_id held) {
  const auto found = held_.find(held);
  if (found == held_.end()) return;
  tell_changes();
  scheduler_.release(found->second.hold.blocks);
  held_.erase(found);
}

std::vector<sequence_id> step_model::preempted() const {
  std::vector<sequence_id> ids;
  for (const auto slot : scheduler_.preempted()) ids.push_back(scheduler_.id(slot));
  return ids;
}

void step_model::reset_prefix_cache() {
  tell_changes();
  scheduler_.reset_prefix_cache();
  // What precedes their blocks has no name any more, so neither may they get one.
  for (auto& [id, each] : held_) each.waits.reset();
}

step_output step_model::end_step() {
  step_output output;
  for (const auto& made : scheduler_.end_step()) {
    auto& one = sequences_.at(made.id);
    const auto token = one.source.next(!one.ignore_eos && made.answered > one.min_tokens);
    one.tokens.push_back(token);
    if (one.tokens.size() % block_size() == 0) {
      hash_full_blocks(one);
      scheduler_.name_block(one.slot, one.hashes.back());
    }
    auto& told = output.tokens.emplace_back(token_output{made.id, token, std::nullopt, made.cached_tokens});
    if (token == eos_token) {
      told.finish = finish_reason::stop;
    } else if (made.at_limit) {
      told.finish = finish_reason::length;
    }
    if (told.finish == finish_reason::length && one.hold_blocks) {
      hold(made.id);
    } else if (told.finish) {
      abort(made.id);
    }
  }
  output.events = take_events();
  return output;
}

std::vector<kv_event> step_model::take_events() {
  tell_changes();
  return std::exchange(events_, {});
}

void step_model::tell_changes() {
  const auto changes = scheduler_.cache().changes();
  for (auto change = changes.begin(); change != changes.end(); ++change) {
    if (change->what == cache_change::kind::removed) {
      events_.push_back(block_removed{change->name});
      continue;
    }
    if (change->what == cache_change::kind::cleared) {
      events_.push_back(all_blocks_cleared{});
      continue;
    }
    // What one step of one sequence stores is one event.
    const auto& of = owner(change->sequence);
    blocks_stored event;
    if (change->index == 0) {
      event.salt = of.salt;
    } else {
      event.parent = of.hashes[change->index - 1];
    }
    const auto from = of.tokens.begin() + static_cast<std::ptrdiff_t>(std::size_t{change->index} * block_size());
    event.hashes.push_back(change->name);
    for (auto next = change + 1; next != changes.end() && next->what == cache_change::kind::stored &&
                                 next->sequence == change->sequence && next->index == change->index + 1;
         ++next, ++change)
      event.hashes.push_back(next->name);
    event.tokens.assign(from, from + static_cast<std::ptrdiff_t>(event.hashes.size() * block_size()));
    events_.push_back(std::move(event));
  }
  scheduler_.forget_changes();
}

}  // namespace infernex::simulator
