#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <vector>

#include "actors/simulator/batch_scheduler.hpp"

namespace infernex::simulator {

/// What would become of one sequence more at an engine if nobody else came: its scheduler run ahead on lengths alone,
/// with the true lengths of all answers. Simpler than the scheduler in that blocks which sequences share are freed with
/// each of them, that nothing cached is evicted meanwhile, and that nobody is preempted. One object an engine; it keeps
/// its scratch and what it has looked up of those that wait.
class batch_forecast {
 public:
  struct question {
    std::uint32_t prompt_tokens = 0;
    std::span<const block_name> chain;
    /// As in sequence_shape.
    bool kv_present = false;
    /// It comes so long after the next step begins.
    double after_ms = 0;
    /// Answers later than this are of no interest.
    double limit_ms = 0;
  };
  struct answer {
    /// From the beginning of the next step to the end of that with its first token, at speed 1.
    double first_token_ms = 0;
    /// Prompt tokens it must compute.
    std::uint32_t uncached = 0;
  };
  /// Nothing: over the limit, or it finds no memory. `quiet_steps`: how many of the scheduler's quiet steps will have
  /// been taken when the next one begins.
  std::optional<answer> ask(const batch_scheduler& of, std::uint32_t quiet_steps, const question& about);

 private:
  struct running {
    std::uint32_t length;
    std::uint32_t computed;
    std::uint32_t prefill_end;
    /// Its length when it is over.
    std::uint32_t end;
    std::uint32_t blocks;
    bool asked;
  };
  struct looked_up {
    std::uint64_t naming = 0;
    std::uint32_t blocks = 0;
  };

  std::uint64_t copy(const batch_scheduler& of, std::uint32_t quiet_steps);
  static std::uint32_t reusable(const batch_scheduler& of, std::span<const block_name> names, std::uint32_t length,
                                std::size_t waiting_before);
  /// Of the one at this place of the queue, looked up once.
  std::uint32_t expected_blocks(const batch_scheduler& of, std::size_t waiting);

  std::vector<running> running_;
  std::vector<looked_up> known_;  // by slot
};

}  // namespace infernex::simulator
