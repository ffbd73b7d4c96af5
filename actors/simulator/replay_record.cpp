#include "actors/simulator/replay_record.hpp"

#include <algorithm>

#include "actors/simulator/replay_trace_file.hpp"
#include "messages/view.hpp"

namespace infernex::simulator {

replay_recorder::replay_recorder(std::string model, limits bounds) : model_(std::move(model)), bounds_(bounds) {}

void replay_recorder::query(const fb::RouteQuery& message, clock_point now) {
  expire(now);
  const auto* items = message.items();
  if (!items || message.explain()) return;  // nobody sends what was only explained
  if (model_.empty()) model_ = text(message.model());
  if (text(message.model()) != model_) {
    counts_.other_model += items->size();
    return;
  }
  // One message brings requests of the same moment: that they are apart by nearly nothing keeps their order.
  for (const auto* one : *items) {
    if (one) item(*one, now);
    now += std::chrono::microseconds(1);
  }
}

void replay_recorder::item(const fb::RouteItem& one, clock_point now) {
  std::string id(text(one.request_id()));
  // Asked for again when an engine failed it: it arrived when it was first asked for.
  if (id.empty() || pending_.count(id) != 0) return;
  if (block_size_ == 0) block_size_ = one.block_size();
  if (one.block_size() == 0 || one.block_size() != block_size_) {
    ++counts_.other_block_size;
    return;
  }
  const auto keys = elements(one.keys());
  if (pending_.size() >= bounds_.max_pending || pending_keys_ + keys.size() > bounds_.max_pending_keys) {
    ++counts_.over_bound;
    return;
  }
  if (!first_) first_ = now;
  request asked{.arrived = now,
                .prompt_tokens = std::nullopt,
                .keys = {keys.begin(), keys.end()},
                .place = order_.insert(order_.end(), id)};
  if (const auto tokens = one.prompt_tokens(); tokens) asked.prompt_tokens = *tokens;
  pending_keys_ += keys.size();
  pending_.emplace(std::move(id), std::move(asked));
}

replay_recorder::request replay_recorder::take(std::unordered_map<std::string, request>::iterator one) {
  auto taken = std::move(one->second);
  pending_keys_ -= taken.keys.size();
  order_.erase(taken.place);
  pending_.erase(one);
  return taken;
}

void replay_recorder::expire(clock_point now) {
  while (!order_.empty()) {
    const auto oldest = pending_.find(order_.front());
    if (now - oldest->second.arrived < bounds_.expiry) return;
    take(oldest);
    ++counts_.expired;
  }
}

std::string replay_recorder::life(const fb::RequestLife& message, clock_point now) {
  expire(now);
  std::string lines;
  const auto* finished = message.finished();
  if (!finished || (!model_.empty() && text(message.model()) != model_)) return lines;
  for (const auto* one : *finished) {
    if (!one) continue;
    const auto found = pending_.find(std::string(text(one->request_id())));
    if (found == pending_.end()) {
      ++counts_.no_query;
      continue;
    }
    lines += line(take(found), *one);
  }
  return lines;
}

std::string replay_recorder::line(const request& asked, const fb::Finished& ended) {
  if (ended.outcome() != fb::Outcome::Completed) {
    ++counts_.not_completed;
    return {};
  }
  const auto told = ended.prompt_tokens();
  const auto prompt_tokens = told ? std::optional<std::uint32_t>(*told) : asked.prompt_tokens;
  const auto output_tokens = ended.completion_tokens();
  if (prompt_tokens.value_or(0) == 0 || !output_tokens || *output_tokens == 0) {
    ++counts_.no_lengths;
    return {};
  }
  ++counts_.recorded;
  // Keys made of text are of about a block each: no more of them than the prompt has blocks.
  const auto blocks = (static_cast<std::uint64_t>(*prompt_tokens) + block_size_ - 1) / block_size_;
  const auto keys = std::span(asked.keys).first(std::min<std::size_t>(asked.keys.size(), blocks));
  std::optional<double> ttft_ms;
  if (const auto ttft = ended.ttft_ms(); ttft) ttft_ms = *ttft;
  std::string text;
  if (!header_written_) text = trace_header(block_size_, model_);
  header_written_ = true;
  return text + trace_line({.arrival_ms = std::chrono::duration<double, std::milli>(asked.arrived - *first_).count(),
                            .prompt_tokens = *prompt_tokens,
                            .output_tokens = *output_tokens,
                            .blocks = keys},
                           ttft_ms);
}

}  // namespace infernex::simulator
