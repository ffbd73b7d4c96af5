#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <string>

#include "actors/indexer/kv_index.hpp"
#include "actors/simulator/replay_engine.hpp"

namespace infernex::simulator {

enum class replay_role : std::uint8_t { aggregated, prefill, decode };

/// One engine of a replay and its life.
struct replay_engine_settings {
  settings engine;
  /// Divides the times of its steps; settings::speed, which is the live engine's, is not looked at.
  double speed = 1;
  replay_role role = replay_role::aggregated;
  /// The PD group: of prefill and decode engines only. Pairs are within one.
  std::string group = "g";
  /// When it joins (a scale-out), and when it fails, for good.
  double starts_ms = 0;
  double dies_ms = replay_engine::never;
};

/// Who there is. What it points to outlives the policies.
struct replay_fleet {
  std::span<const replay_engine_settings> engines;
  /// The true engines, by number. For oracles: a policy that looks at them is none.
  std::span<const std::unique_ptr<replay_engine>> truth;
  /// What the engines have published, known a little later than it happens. Instances are called by instance_name().
  const indexer::kv_index* index = nullptr;
  std::uint32_t block_tokens = 1;
  /// The time KV takes from a prefill engine to a decode engine, by tokens.
  std::function<double(std::uint64_t)> transfer_ms;
};

/// In the order of the numbers.
std::string instance_name(std::uint32_t engine);

/// A request to be placed.
struct replay_request {
  /// Its index in the trace.
  std::uint64_t id = 0;
  /// One that lost its engine in mid-answer brings what it was answered along.
  std::uint32_t prompt_tokens = 0;
  /// For oracles.
  std::uint32_t output_tokens = 0;
  /// Keys of the prompt's full blocks.
  std::span<const block_name> blocks;
  std::uint32_t tenant = 0;
  std::int32_t priority = 0;
  std::uint64_t session = 0;
};

struct replay_choice {
  std::uint32_t engine = 0;
  /// Set: `engine` computes the prompt, and this one the answer.
  std::optional<std::uint32_t> decode;
  /// What the router expects `engine` to compute of the prompt: its share of load until it has.
  std::uint64_t prefill_tokens = 0;
};

/// How far a request has come, as its gateway tells it. Times since the start of the replay, absent until they are
/// there.
struct replay_progress {
  std::uint64_t id = 0;
  replay_choice choice;
  std::uint32_t prompt_tokens = 0;
  /// By the engine's own account.
  std::uint32_t cached_tokens = 0;
  std::uint32_t answered = 0;
  double placed_ms = 0;
  /// The prompt was computed.
  std::optional<double> prefilled_ms;
  std::optional<double> first_token_ms;
  std::optional<double> ended_ms;
  /// It lost an engine on its way: its times and tokens are not those of one engine.
  bool moved = false;
};

/// A router replica: places requests by what has come to its knowledge. Each call comes when its content is known to
/// this replica, which may be later than it happened; `now_ms` never decreases.
class replay_policy {
 public:
  virtual ~replay_policy() = default;

  /// False: nothing is ever looked up in the index, so that it need not be kept.
  virtual bool uses_index() const { return true; }
  virtual void engine_up(std::uint32_t engine, double now_ms) = 0;
  virtual void engine_down(std::uint32_t engine, double now_ms) = 0;
  virtual void load_reported(std::uint32_t engine, const engine_load& load, double now_ms) = 0;

  /// Nothing: nobody can take it. A choice counts in this replica's loads from now on.
  virtual std::optional<replay_choice> place(const replay_request& request, double now_ms) = 0;
  /// Another replica has placed it.
  virtual void placed_elsewhere(const replay_progress& of, double now_ms) = 0;
  /// The prompt is computed (aggregated engines: the first token).
  virtual void prefilled(const replay_progress& of, double now_ms) = 0;
  /// It is over at these engines: answered, refused or lost with one of them.
  virtual void ended(const replay_progress& of, double now_ms) = 0;
};

/// Makes the policy of one replica. `seed` differs between them.
using replay_policy_maker = std::function<std::unique_ptr<replay_policy>(const replay_fleet&, std::uint64_t seed)>;

}  // namespace infernex::simulator
