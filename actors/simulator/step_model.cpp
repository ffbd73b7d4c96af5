#include "actors/simulator/step_model.hpp"

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
                 std::move(request.source)};
  hash_full_blocks(fresh);
  const auto failed = scheduler_.add({.id = request.id,
                                      .prompt_tokens = static_cast<std::uint32_t>(fresh.tokens.size()),
                                      .max_tokens = request.max_tokens,
                                      .chain = fresh.hashes},
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
    if (told.finish) abort(made.id);
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
    const auto& of = sequences_.at(change->sequence);
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
