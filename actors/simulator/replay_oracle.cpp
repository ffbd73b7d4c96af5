#include "actors/simulator/replay_oracle.hpp"

#include <vector>

#include "actors/simulator/batch_forecast.hpp"

namespace infernex::simulator {

namespace {

class oracle : public replay_policy {
 public:
  oracle(const replay_fleet& fleet, double work_weight)
      : fleet_(fleet), work_weight_(work_weight), up_(fleet.engines.size()), forecasts_(fleet.engines.size()) {}

  bool uses_index() const override { return false; }
  void engine_up(std::uint32_t engine, double) override { up_[engine] = true; }
  void engine_down(std::uint32_t engine, double) override { up_[engine] = false; }
  void load_reported(std::uint32_t, const engine_load&, double) override {}
  void placed_elsewhere(const replay_progress&, double) override {}
  void prefilled(const replay_progress&, double) override {}
  void ended(const replay_progress&, double) override {}

  std::optional<replay_choice> place(const replay_request& request, double now_ms) override {
    const auto alone = best(replay_role::aggregated, request, now_ms, 0);
    const auto prefill = best(replay_role::prefill, request, now_ms, 0);
    std::optional<found> decode;
    if (prefill) decode = best(replay_role::decode, request, now_ms, prefill->first_token_ms);
    if (decode && (!alone || decode->cost + prefill->cost - prefill->first_token_ms < alone->cost))
      return replay_choice{prefill->engine, decode->engine, prefill->uncached};
    if (!alone) return std::nullopt;
    return replay_choice{alone->engine, std::nullopt, alone->uncached};
  }

 private:
  struct found {
    std::uint32_t engine = 0;
    /// From now.
    double first_token_ms = 0;
    double cost = 0;
    std::uint32_t uncached = 0;
  };

  /// `prefilled_ms`: of decode engines, when the prompt will be computed, from now.
  std::optional<found> best(replay_role role, const replay_request& request, double now_ms, double prefilled_ms) {
    std::optional<found> least;
    for (std::uint32_t i = 0; i < fleet_.engines.size(); ++i) {
      if (fleet_.engines[i].role != role || !up_[i]) continue;
      const auto& engine = *fleet_.truth[i];
      const auto limit = least ? least->cost : replay_engine::never;
      const auto [begins_ms, quiet] = engine.next_step(now_ms);
      const auto wait = begins_ms - now_ms;
      double arrives = 0;
      if (role == replay_role::decode) {
        const auto cached = engine.scheduler().cache().matched(request.blocks) * fleet_.block_tokens;
        arrives = prefilled_ms + fleet_.transfer_ms(request.prompt_tokens - cached);
      }
      const auto seen = forecasts_[i].ask(engine.scheduler(), quiet,
                                          {.prompt_tokens = request.prompt_tokens,
                                           .chain = request.blocks,
                                           .kv_present = role == replay_role::decode,
                                           .after_ms = (arrives - wait) * engine.speed(),
                                           .limit_ms = (limit - wait) * engine.speed()});
      if (!seen) continue;
      const auto first = wait + seen->first_token_ms / engine.speed();
      const auto work = prefill_milliseconds(fleet_.engines[i].engine.costs, seen->uncached) / engine.speed();
      const auto cost = first + work_weight_ * work;
      const bool less = !least || cost < least->cost || (cost == least->cost && held(i) < held(least->engine));
      if (less) least = {i, first, cost, seen->uncached};
    }
    return least;
  }
  std::uint32_t held(std::uint32_t engine) const { return fleet_.truth[engine]->scheduler().cache().used(); }

  replay_fleet fleet_;
  double work_weight_;
  std::vector<bool> up_;
  std::vector<batch_forecast> forecasts_;
};

}  // namespace

replay_policy_maker oracle_policy(double work_weight) {
  return [work_weight](const replay_fleet& fleet, std::uint64_t) -> std::unique_ptr<replay_policy> {
    return std::make_unique<oracle>(fleet, work_weight);
  };
}

}  // namespace infernex::simulator
