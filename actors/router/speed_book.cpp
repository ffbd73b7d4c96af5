#include "actors/router/speed_book.hpp"

#include <algorithm>

namespace infernex::router {

namespace {

constexpr std::uint32_t fewest = 5;
constexpr double mean_keep = 0.95;

void fade(std::optional<double>& mean, double value) {
  mean = mean ? mean_keep * *mean + (1 - mean_keep) * value : value;
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

void speed_book::routed(std::string_view request_id, slot_ref slot, std::uint64_t tokens_ahead, std::uint64_t blocks,
                        clock_point now) {
  while (!order_.empty() && order_.size() >= bounds_.max_open) {
    const auto oldest = std::move(order_.front());
    order_.pop_front();
    const auto it = open_.find(oldest.request_id);
    if (it != open_.end() && it->second.number == oldest.number) open_.erase(it);
  }
  std::string id(request_id);
  order_.push_back({now + bounds_.expiry, id, next_number_});
  open_.insert_or_assign(std::move(id), entry{slot, static_cast<double>(tokens_ahead), static_cast<double>(blocks),
                                              next_number_++});
}

void speed_book::finished(std::string_view request_id, std::optional<double> ttft_ms, double duration_ms,
                          std::optional<std::uint32_t> output_tokens) {
  const auto it = open_.find(std::string(request_id));
  if (it == open_.end()) return;
  const auto from = it->second;
  open_.erase(it);
  if (!ttft_ms || (engines_.size() >= bounds_.max_engines && !engines_.contains(from.slot.index))) return;
  auto& of = engines_[from.slot.index];
  if (of.generation != from.slot.generation) of = {from.slot.generation, {}, {}, {}, {}, {}};
  of.ttft.add(from.tokens_ahead, *ttft_ms);
  fade(of.mean_ttft, *ttft_ms);
  if (output_tokens) fade(of.mean_output, *output_tokens);
  if (output_tokens && *output_tokens > 1) {
    const auto tpot = std::max(0.0, duration_ms - *ttft_ms) / (*output_tokens - 1);
    of.tpot.add(from.blocks, tpot);
    fade(of.mean_tpot, tpot);
  }
  learned_speed speed;
  if (const auto line = of.ttft.fit()) {
    speed.ttft_base_ms = static_cast<float>(line->base);
    speed.prefill_ms_a_token = static_cast<float>(line->slope);
  }
  if (const auto line = of.tpot.fit()) {
    speed.tpot_base_ms = static_cast<float>(line->base);
    speed.tpot_ms_a_block = static_cast<float>(line->slope);
  }
  speed.ttft_ms = as_float(of.mean_ttft);
  speed.tpot_ms = as_float(of.mean_tpot);
  speed.output_tokens = as_float(of.mean_output);
  board_.learn(from.slot, speed);
}

void speed_book::expire(clock_point now) {
  while (!order_.empty() && order_.front().at <= now) {
    const auto it = open_.find(order_.front().request_id);
    if (it != open_.end() && it->second.number == order_.front().number) open_.erase(it);
    order_.pop_front();
  }
}

}  // namespace infernex::router
