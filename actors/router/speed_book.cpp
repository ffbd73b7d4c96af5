#include "actors/router/speed_book.hpp"

#include <algorithm>

namespace infernex::router {

namespace {

constexpr std::uint32_t fewest = 5;
constexpr double mean_keep = 0.95;

void fade(std::optional<double>& mean, double value) {
  mean = mean ? mean_keep * *mean + (1 - mean_keep) * value : value;
}

template <class T>
std::optional<T> as_optional(const flatbuffers::Optional<T>& value) {
  return value ? std::optional<T>(*value) : std::nullopt;
}

speed_result result_of(std::optional<double> ttft_ms, double duration_ms, std::optional<std::uint32_t> output_tokens) {
  const auto decode_ms = ttft_ms ? std::optional(std::max(0.0, duration_ms - *ttft_ms)) : std::nullopt;
  return {ttft_ms, decode_ms, output_tokens};
}

std::optional<float> as_float(const std::optional<double>& value) {
  return value ? std::optional(static_cast<float>(*value)) : std::nullopt;
}

}  // namespace

void fading_line::add(double x, double y) {
  n_ = n_ * keep_ + 1;
  x_ = x_ * keep_ + x;
  y_ = y_ * keep_ + y;
  xx_ = xx_ * keep_ + x * x;
  xy_ = xy_ * keep_ + x * y;
  ++count_;
}

std::optional<fading_line::line> fading_line::fit() const {
  if (count_ < fewest) return std::nullopt;
  const double spread = n_ * xx_ - x_ * x_;
  const double mean_x = x_ / n_;
  const double mean_y = y_ / n_;
  // Measurements at one point only tell the mean.
  if (spread <= 1e-9 * n_ * xx_) return line{mean_y, 0};
  const double slope = (n_ * xy_ - x_ * y_) / spread;
  if (slope <= 0) return line{mean_y, 0};
  const double base = mean_y - slope * mean_x;
  if (base < 0) return line{0, xx_ > 0 ? xy_ / xx_ : 0};
  return line{base, slope};
}

speed_conditions conditions_of(const load_board& board, slot_ref slot, load_share share, clock_point now) {
  const auto load = board.read(slot, now);
  return {slot, load.prefill_tokens + share.prefill_tokens, load.active_blocks + share.blocks};
}

std::optional<speed_result> speed_result_of(const fb::FinishedT& record) {
  if (record.outcome != fb::Outcome::Completed) return std::nullopt;
  return result_of(as_optional(record.ttft_ms), record.duration_ms, as_optional(record.completion_tokens));
}

std::optional<speed_result> speed_result_of(const fb::Finished& record) {
  if (record.outcome() != fb::Outcome::Completed) return std::nullopt;
  return result_of(as_optional(record.ttft_ms()), record.duration_ms(), as_optional(record.completion_tokens()));
}

void speed_book::routed(std::string_view request_id, const speed_conditions& met, clock_point now) {
  const auto live = [&](const due& one) {
    const auto it = open_.find(one.request_id);
    return it != open_.end() && it->second.number == one.number;
  };
  // Requests that have ended are in the order still, until they are its oldest.
  while (!order_.empty()) {
    const bool ended = !live(order_.front());
    if (!ended && open_.size() < bounds_.max_open && order_.size() < 4 * bounds_.max_open) break;
    if (!ended) open_.erase(order_.front().request_id);
    order_.pop_front();
  }
  std::string id(request_id);
  order_.push_back({now + bounds_.expiry, id, next_number_});
  open_.insert_or_assign(std::move(id), entry{met, next_number_++});
}

void speed_book::finished(std::string_view request_id, const std::optional<speed_result>& answered) {
  const auto it = open_.find(std::string(request_id));
  if (it == open_.end()) return;
  const auto met = it->second.met;
  open_.erase(it);
  if (answered) learn(met, *answered);
}

void speed_book::learn(const speed_conditions& met, const speed_result& answered) {
  if (!answered.ttft_ms && !answered.decode_ms) return;
  if (engines_.size() >= bounds_.max_engines && !engines_.contains(met.slot.index)) return;
  auto& of = engines_[met.slot.index];
  if (of.generation > met.slot.generation) return;  // of the slot's owner before
  if (of.generation != met.slot.generation) {
    of = engine();
    of.generation = met.slot.generation;
  }
  if (answered.ttft_ms) {
    of.ttft.add(static_cast<double>(met.tokens_ahead), *answered.ttft_ms);
    fade(of.mean_ttft, *answered.ttft_ms);
  }
  const auto tokens = answered.output_tokens;
  if (tokens) fade(of.mean_output, *tokens);
  if (answered.decode_ms && tokens && *tokens > 1) {
    const auto tpot = *answered.decode_ms / (*tokens - 1);
    of.tpot.add(static_cast<double>(met.blocks), tpot);
    fade(of.mean_tpot, tpot);
  }
  learned_speed speed;
  if (const auto line = of.ttft.fit()) {
    speed.ttft_base_ms = static_cast<float>(line->base);
    // Prompts of one length tell no slope; none is not a slope of 0, with which any queue would cost nothing.
    if (line->slope > 0) speed.prefill_ms_a_token = static_cast<float>(line->slope);
  }
  if (const auto line = of.tpot.fit()) {
    speed.tpot_base_ms = static_cast<float>(line->base);
    speed.tpot_ms_a_block = static_cast<float>(line->slope);
  }
  speed.ttft_ms = as_float(of.mean_ttft);
  speed.tpot_ms = as_float(of.mean_tpot);
  speed.output_tokens = as_float(of.mean_output);
  board_.learn(met.slot, speed);
}

void speed_book::expire(clock_point now) {
  while (!order_.empty() && order_.front().at <= now) {
    const auto it = open_.find(order_.front().request_id);
    if (it != open_.end() && it->second.number == order_.front().number) open_.erase(it);
    order_.pop_front();
  }
}

}  // namespace infernex::router
