#include "actors/router/load_board.hpp"

#include <algorithm>
#include <array>
#include <bit>
#include <cmath>
#include <limits>

namespace infernex::router {

namespace {

constexpr std::uint32_t none = 0xffffffff;

/// A 32-bit value together with the generation of the slot's owner: because both change in one step, a late
/// writer can never touch its successor's value, nor a late reader take it for its own.
class owned_value {
 public:
  /// `otherwise` if it is another owner's by now.
  std::uint32_t read(std::uint32_t generation, std::uint32_t otherwise) const {
    const auto word = word_.load(std::memory_order_relaxed);
    return word >> 32 == generation ? static_cast<std::uint32_t>(word) : otherwise;
  }
  void reset(std::uint32_t generation, std::uint32_t value) {
    word_.store(pack(generation, value), std::memory_order_relaxed);
  }
  template <class Change>
  void update(std::uint32_t generation, Change change) {
    auto word = word_.load(std::memory_order_relaxed);
    while (word >> 32 == generation &&
           !word_.compare_exchange_weak(word, pack(generation, change(static_cast<std::uint32_t>(word))),
                                        std::memory_order_relaxed)) {
    }
  }

 private:
  static std::uint64_t pack(std::uint32_t generation, std::uint32_t value) {
    return (std::uint64_t{generation} << 32) | value;
  }
  std::atomic<std::uint64_t> word_{0};
};

std::uint32_t saturate(std::uint64_t value) {
  return static_cast<std::uint32_t>(std::min<std::uint64_t>(value, std::numeric_limits<std::uint32_t>::max()));
}
std::uint32_t plus(std::uint32_t a, std::uint64_t b) { return saturate(a + std::min<std::uint64_t>(b, none)); }
std::uint32_t minus(std::uint32_t a, std::uint64_t b) { return b >= a ? 0 : a - static_cast<std::uint32_t>(b); }

/// Milliseconds of the steady clock, modulo 2^32. Wraps after 49 days; the fleet withdraws measurements long
/// before they are so old.
std::uint32_t stamp(clock_point at) {
  return static_cast<std::uint32_t>(
      std::chrono::duration_cast<std::chrono::milliseconds>(at.time_since_epoch()).count());
}

std::uint32_t measured(std::optional<std::uint32_t> value) { return value ? std::min(*value, none - 1) : none; }

std::uint32_t bits(std::optional<float> value) {
  return value && std::isfinite(*value) ? std::bit_cast<std::uint32_t>(*value) : none;
}
std::optional<float> float_of(std::uint32_t word) {
  return word == none ? std::nullopt : std::optional(std::bit_cast<float>(word));
}

}  // namespace

/// Three cache lines: a decision reads every candidate's.
struct alignas(64) load_board::cell {
  owned_value running;  // `none`: not measured
  owned_value waiting;
  owned_value kv_usage;  // bits of a float
  owned_value measured_at;
  owned_value in_flight_then;  // at that time
  owned_value remote_requests;
  owned_value remote_prefill;
  owned_value local_requests;
  owned_value local_prefill;
  owned_value remote_blocks;
  owned_value local_blocks;
  // Of learned_speed, in its order; bits of floats.
  std::array<owned_value, 7> speed;

  void start(std::uint32_t of) {
    for (auto* unknown : {&running, &waiting, &kv_usage}) unknown->reset(of, none);
    for (auto& unknown : speed) unknown.reset(of, none);
    for (auto* zero : {&measured_at, &in_flight_then, &remote_requests, &remote_prefill, &local_requests,
                       &local_prefill, &remote_blocks, &local_blocks})
      zero->reset(of, 0);
  }
};

load_board::load_board(std::uint32_t slots, std::chrono::milliseconds max_age)
    : cells_(new cell[slots]), owners_(slots), count_(slots), max_age_(max_age) {
  for (std::uint32_t i = 0; i < slots; ++i) owners_[i].next_free = i + 1;
}
load_board::~load_board() = default;

std::optional<slot_ref> load_board::acquire() {
  if (next_free_ >= count_) return std::nullopt;
  const auto index = next_free_;
  next_free_ = owners_[index].next_free;
  cells_[index].start(++owners_[index].generation);
  return slot_ref{index, owners_[index].generation};
}

void load_board::release(slot_ref slot) {
  if (slot.index >= count_ || owners_[slot.index].generation != slot.generation) return;
  auto& freed = owners_[slot.index];
  cells_[slot.index].start(++freed.generation);
  freed.next_free = next_free_;
  next_free_ = slot.index;
}

load_reading load_board::read(slot_ref slot, clock_point now) const {
  load_reading out;
  if (slot.index >= count_) return out;
  const auto& c = cells_[slot.index];
  const auto g = slot.generation;
  out.in_flight = plus(c.remote_requests.read(g, 0), c.local_requests.read(g, 0));
  out.prefill_tokens = plus(c.remote_prefill.read(g, 0), c.local_prefill.read(g, 0));
  out.active_blocks = plus(c.remote_blocks.read(g, 0), c.local_blocks.read(g, 0));
  const auto learned = [&](std::size_t i) { return float_of(c.speed[i].read(g, none)); };
  out.speed = {learned(0), learned(1), learned(2), learned(3), learned(4), learned(5), learned(6)};
  const auto running = c.running.read(g, none);
  const auto waiting = c.waiting.read(g, none);
  const auto usage = c.kv_usage.read(g, none);
  if ((running & waiting & usage) == none) return out;
  // A report of just now may carry a stamp later than the caller's clock: that is an age of 0.
  const std::uint32_t age = stamp(now) - c.measured_at.read(g, 0);
  out.age = std::chrono::milliseconds(age > none - 60'000 ? 0 : age);
  if (*out.age > max_age_) return out;
  out.placed_since = std::int64_t{out.in_flight} - c.in_flight_then.read(g, out.in_flight);
  if (running != none) out.running = running;
  if (waiting != none) out.waiting = waiting;
  if (usage != none) out.kv_usage = static_cast<double>(std::bit_cast<float>(usage));
  return out;
}

void load_board::report(slot_ref slot, std::optional<std::uint32_t> running, std::optional<std::uint32_t> waiting,
                        std::optional<double> kv_usage, clock_point now) {
  if (slot.index >= count_) return;
  auto& c = cells_[slot.index];
  const auto set = [&](owned_value& value, std::uint32_t to) {
    value.update(slot.generation, [to](std::uint32_t) { return to; });
  };
  std::uint32_t usage = none;
  if (kv_usage && std::isfinite(*kv_usage))
    usage = std::bit_cast<std::uint32_t>(static_cast<float>(std::clamp(*kv_usage, 0.0, 1.0)));
  set(c.measured_at, stamp(now));
  set(c.in_flight_then, plus(c.remote_requests.read(slot.generation, 0), c.local_requests.read(slot.generation, 0)));
  set(c.running, measured(running));
  set(c.waiting, measured(waiting));
  set(c.kv_usage, usage);
}

void load_board::learn(slot_ref slot, const learned_speed& s) {
  if (slot.index >= count_) return;
  auto& c = cells_[slot.index];
  const std::array values{s.ttft_base_ms, s.prefill_ms_a_token, s.tpot_base_ms, s.tpot_ms_a_block, s.ttft_ms,
                          s.tpot_ms,      s.output_tokens};
  for (std::size_t i = 0; i < values.size(); ++i)
    c.speed[i].update(slot.generation, [&](std::uint32_t) { return bits(values[i]); });
}

void load_board::set_remote(slot_ref slot, load_share total) {
  if (slot.index >= count_) return;
  auto& c = cells_[slot.index];
  c.remote_requests.update(slot.generation, [&](std::uint32_t) { return total.requests; });
  c.remote_prefill.update(slot.generation, [&](std::uint32_t) { return saturate(total.prefill_tokens); });
  c.remote_blocks.update(slot.generation, [&](std::uint32_t) { return saturate(total.blocks); });
}

void load_board::reserve(slot_ref slot, load_share share) {
  if (slot.index >= count_) return;
  auto& c = cells_[slot.index];
  c.local_requests.update(slot.generation, [&](std::uint32_t v) { return plus(v, share.requests); });
  c.local_prefill.update(slot.generation, [&](std::uint32_t v) { return plus(v, share.prefill_tokens); });
  c.local_blocks.update(slot.generation, [&](std::uint32_t v) { return plus(v, share.blocks); });
}

void load_board::unreserve(slot_ref slot, load_share share) {
  if (slot.index >= count_) return;
  auto& c = cells_[slot.index];
  c.local_requests.update(slot.generation, [&](std::uint32_t v) { return minus(v, share.requests); });
  c.local_prefill.update(slot.generation, [&](std::uint32_t v) { return minus(v, share.prefill_tokens); });
  c.local_blocks.update(slot.generation, [&](std::uint32_t v) { return minus(v, share.blocks); });
}

}  // namespace infernex::router
