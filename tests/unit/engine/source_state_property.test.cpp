#include <deque>
#include <optional>
#include <random>
#include <vector>

#include <doctest/doctest.h>

#include "actors/engine/source_state.hpp"

// A stream against an engine that loses batches, forgets its history and restarts at random: what is applied is
// always in order, and once the engine is left in peace it is exactly what the engine has.

namespace {

using namespace infernex::engine;
using namespace std::chrono_literals;

struct batch {
  std::uint64_t life = 0;
  std::uint64_t sequence = 0;
  std::uint64_t fingerprint() const { return life * 1'000'003 + sequence; }
};

/// One engine, its two sockets, and a listener that does what the stream says.
class world {
 public:
  explicit world(std::uint64_t seed) : random_(seed), state_({}, below(4) != 0) { state_.start(now_); }

  void step() {
    switch (below(16)) {
      case 0:
        return restart();
      case 1:
        return forget();
      case 2:
        return publish(true);
      case 3:
        return hang();
      case 4:
      case 5:
      case 6:
        return publish(false);
      case 7:
        return pass(std::chrono::milliseconds(below(3'000)));
      case 8:
      case 9:
      case 10:
        return read_replay();
      default:
        return read_live();
    }
  }

  /// No more faults; the engine publishes as it does.
  void settle() {
    calm_ = true;
    for (int round = 0; round < 40; ++round) {
      if (round % 5 == 0) publish(false);
      for (int i = 0; i < 400; ++i) {
        read_replay();
        read_live();
      }
      pass(3s);
    }
  }

  void check_settled() {
    REQUIRE_FALSE(published_.empty());
    REQUIRE_FALSE(applied_.empty());
    CHECK((state_.state() == stream_state::live || state_.state() == stream_state::partial));
    for (const auto& each : applied_) REQUIRE(each.life == life_);
    CHECK(applied_.back().sequence + 1 == published_.size());
    CHECK(state_.last_sequence() == applied_.back().sequence);
    if (applied_.front().sequence > 0) CHECK(state_.partial());
  }

 private:
  std::size_t below(std::size_t bound) { return std::uniform_int_distribution<std::size_t>(0, bound - 1)(random_); }

  void publish(bool lost) {
    published_.push_back({life_, published_.size()});
    if (!lost) live_.push_back(published_.back());
  }
  void restart() {
    if (below(4) != 0) return;
    ++life_;
    published_.clear();
    kept_from_ = 0;
    hang();
  }
  /// A replay's connection: no more answers, no end.
  void hang() {
    hangs_ = hangs_ || replay_.has_value();
    replay_.reset();
  }
  void forget() {
    if (!published_.empty()) kept_from_ = std::max(kept_from_, below(published_.size()));
  }

  void pass(std::chrono::milliseconds time) {
    now_ += time;
    if (state_.on_tick(now_)) {
      replay_.reset();
      hangs_ = false;
    }
    const bool wanted = state_.wants_replay(now_);
    const auto from = state_.begin_replay(now_);
    REQUIRE(from.has_value() == wanted);
    if (!from) return;
    REQUIRE_FALSE(replay_.has_value());
    REQUIRE_FALSE(hangs_);
    replay_.emplace();
    for (const auto& each : published_)
      if (each.sequence >= std::max<std::uint64_t>(*from, kept_from_)) replay_->push_back(each);
  }

  void read_replay() {
    if (!replay_) return;
    if (replay_->empty()) {
      replay_.reset();
      if (state_.on_replay_end(now_)) applied_.clear();
      return;
    }
    const auto next = replay_->front();
    replay_->pop_front();
    // Dropped by a pipe that was full.
    if (!calm_ && !replay_->empty() && below(20) == 0) replay_->pop_front();
    act(state_.on_replayed(next.sequence, next.fingerprint(), now_), next);
  }

  void read_live() {
    if (!state_.reads_live()) return;
    if (!held_ && live_.empty()) return;
    const auto next = held_ ? *held_ : live_.front();
    held_ ? held_.reset() : live_.pop_front();
    if (!applied_.empty() && next.sequence == applied_.back().sequence + 1 && next.life != applied_.back().life)
      return resync();
    act(state_.on_live(next.sequence, next.fingerprint(), now_), next);
  }

  /// A new life that goes on with the very next sequence cannot be told by the stream: the engine's epoch tells.
  void resync() {
    applied_.clear();
    held_.reset();
    live_.clear();
    replay_.reset();
    hangs_ = false;
    state_.start(now_);
  }

  void act(batch_verdict verdict, const batch& what) {
    using v = batch_verdict;
    if (verdict == v::renew) return resync();
    if (verdict == v::clear_and_apply || verdict == v::clear_and_drop || verdict == v::clear_and_hold) applied_.clear();
    if (verdict == v::hold || verdict == v::clear_and_hold) held_ = what;
    if (verdict != v::apply && verdict != v::clear_and_apply) return;
    if (!applied_.empty()) REQUIRE(what.sequence == applied_.back().sequence + 1);
    applied_.push_back(what);
  }

  std::mt19937_64 random_;
  source_state::time_point now_{std::chrono::hours(1)};
  source_state state_;

  std::uint64_t life_ = 1;
  std::vector<batch> published_;
  std::size_t kept_from_ = 0;
  std::deque<batch> live_;
  std::optional<std::deque<batch>> replay_;
  bool hangs_ = false;
  bool calm_ = false;

  std::optional<batch> held_;
  std::vector<batch> applied_;
};

TEST_CASE(
    "whatever an engine loses or forgets, and however often it restarts, its stream ends up exact or says what it "
    "lacks") {
  for (std::uint64_t seed = 1; seed <= 400; ++seed) {
    CAPTURE(seed);
    world all(seed);
    for (int i = 0; i < 600; ++i) all.step();
    all.settle();
    all.check_settled();
  }
}

}  // namespace
