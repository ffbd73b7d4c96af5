#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

namespace infernex::simulator {

/// One request of a trace: what it asked for and when, never what it said. Points into the trace (or the caller's
/// scratch).
struct traced_request {
  /// Since the trace's first request.
  double arrival_ms = 0;
  /// At least 1 each.
  std::uint32_t prompt_tokens = 1;
  std::uint32_t output_tokens = 1;
  /// Keys of the prompt's leading blocks, chained: equal keys mean equal prefixes. Where the last one is of a block
  /// that is not full it names the prompt's end; an engine serves at most floor((prompt_tokens - 1) / block_tokens)
  /// of them from cache.
  std::span<const std::uint64_t> blocks;
  /// Hash of the tenant's name; 0: none was said.
  std::uint32_t tenant = 0;
  /// Higher goes first.
  std::int32_t priority = 0;
  /// Hash of the session; 0: none was said.
  std::uint64_t session = 0;
};

/// Requests in the order of their arrival. Flat: a million requests of 24 blocks take about 240 MB.
class trace {
 public:
  /// `block_tokens`: tokens a block of the keys, at least 1.
  explicit trace(std::uint32_t block_tokens = 1) : block_tokens_(block_tokens) {}

  /// Copies the blocks.
  void add(const traced_request& request);
  /// Orders by arrival (equal ones as they were added) and lets the first arrive at 0. Needed once after add().
  void arrange();

  std::uint32_t block_tokens() const { return block_tokens_; }
  std::size_t size() const { return rows_.size(); }
  bool empty() const { return rows_.empty(); }
  /// Precondition: index < size().
  traced_request operator[](std::size_t index) const;
  /// From the first arrival to the last.
  double span_ms() const;
  std::size_t total_blocks() const { return blocks_.size(); }

 private:
  struct row {
    double arrival_ms;
    std::size_t first_block;
    std::uint64_t session;
    std::uint32_t block_count;
    std::uint32_t prompt_tokens;
    std::uint32_t output_tokens;
    std::uint32_t tenant;
    std::int32_t priority;
  };

  std::uint32_t block_tokens_;
  std::vector<row> rows_;
  std::vector<std::uint64_t> blocks_;
};

/// A trace run several times over, at a multiple of its rate. Repetitions share neither blocks nor sessions (but for a
/// chance of about n^2 / 2^65), and nothing of them is stored. The trace must outlive it.
class repeated_trace {
 public:
  /// Where the blocks of one request are put; a caller keeps one for each request it looks at.
  using scratch = std::vector<std::uint64_t>;

  /// `times` at least 1; `rate` > 0, 2 = everything arrives in half the time.
  explicit repeated_trace(const trace& once, std::uint32_t times = 1, double rate = 1.0);

  std::uint32_t block_tokens() const { return once_->block_tokens(); }
  std::size_t size() const { return once_->size() * times_; }
  /// Valid until `blocks` is changed. Repetition 0 has the trace's own keys. Precondition: index < size().
  traced_request get(std::size_t index, scratch& blocks) const;
  /// The same without blocks and session.
  double arrival_ms(std::size_t index) const;
  double span_ms() const;
  /// Arrivals, a second; 0 where all arrive at once.
  double requests_per_second() const;

 private:
  const trace* once_;
  std::uint32_t times_;
  double rate_;
  /// From the first arrival of one repetition to that of the next, at rate 1: the span and one mean gap, so that no
  /// seam is seen in the rate.
  double period_ms_;
};

/// A one-to-one map of 64-bit values without visible order (the finalizer of splitmix64, Steele et al., 2014).
constexpr std::uint64_t mixed(std::uint64_t value) {
  value = (value ^ (value >> 30)) * 0xbf58476d1ce4e5b9;
  value = (value ^ (value >> 27)) * 0x94d049bb133111eb;
  return value ^ (value >> 31);
}

/// The key of a block in repetition `times`: one-to-one for each of them, the key itself for 0.
constexpr std::uint64_t repeated_key(std::uint64_t key, std::uint64_t times) {
  return times == 0 ? key : mixed(key + times * 0x9e3779b97f4a7c15);
}

}  // namespace infernex::simulator
