#include "actors/simulator/replay_trace.hpp"

#include <algorithm>

namespace infernex::simulator {

void trace::add(const traced_request& request) {
  rows_.push_back({.arrival_ms = request.arrival_ms,
                   .first_block = blocks_.size(),
                   .session = request.session,
                   .block_count = static_cast<std::uint32_t>(request.blocks.size()),
                   .prompt_tokens = request.prompt_tokens,
                   .output_tokens = request.output_tokens,
                   .tenant = request.tenant,
                   .priority = request.priority});
  blocks_.insert(blocks_.end(), request.blocks.begin(), request.blocks.end());
}

void trace::arrange() {
  std::stable_sort(rows_.begin(), rows_.end(),
                   [](const row& one, const row& other) { return one.arrival_ms < other.arrival_ms; });
  if (rows_.empty()) return;
  const auto first = rows_.front().arrival_ms;
  for (auto& one : rows_) one.arrival_ms -= first;
}

traced_request trace::operator[](std::size_t index) const {
  const auto& one = rows_[index];
  return {.arrival_ms = one.arrival_ms,
          .prompt_tokens = one.prompt_tokens,
          .output_tokens = one.output_tokens,
          .blocks = std::span(blocks_).subspan(one.first_block, one.block_count),
          .tenant = one.tenant,
          .priority = one.priority,
          .session = one.session};
}

double trace::span_ms() const { return rows_.empty() ? 0 : rows_.back().arrival_ms - rows_.front().arrival_ms; }

repeated_trace::repeated_trace(const trace& once, std::uint32_t times, double rate)
    : once_(&once), times_(times), rate_(rate) {
  const auto requests = static_cast<double>(once.size());
  period_ms_ = once.size() > 1 ? once.span_ms() * requests / (requests - 1) : 0;
}

double repeated_trace::arrival_ms(std::size_t index) const {
  const auto repetition = index / once_->size();
  return (static_cast<double>(repetition) * period_ms_ + (*once_)[index % once_->size()].arrival_ms) / rate_;
}

traced_request repeated_trace::get(std::size_t index, scratch& blocks) const {
  const auto repetition = index / once_->size();
  auto request = (*once_)[index % once_->size()];
  request.arrival_ms = arrival_ms(index);
  blocks.resize(request.blocks.size());
  std::transform(request.blocks.begin(), request.blocks.end(), blocks.begin(),
                 [repetition](std::uint64_t key) { return repeated_key(key, repetition); });
  request.blocks = blocks;
  if (request.session != 0) request.session = repeated_key(request.session, repetition);
  return request;
}

double repeated_trace::span_ms() const { return size() == 0 ? 0 : arrival_ms(size() - 1); }

double repeated_trace::requests_per_second() const {
  const auto gaps = size() > 1 ? static_cast<double>(size() - 1) : 0.0;
  return span_ms() > 0 ? gaps * 1e3 / span_ms() : 0.0;
}

}  // namespace infernex::simulator
