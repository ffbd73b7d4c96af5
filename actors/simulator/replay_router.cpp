#include "actors/simulator/replay_router.hpp"

#include <algorithm>
#include <cmath>

#include "actors/router/prediction_book.hpp"
#include "actors/router/speed_book.hpp"

namespace infernex::simulator {

namespace {

using router::clock_point;

constexpr std::string_view model = "replay";

/// The clock of a router that has been up for an hour when the replay begins.
clock_point at(double ms) {
  return clock_point(std::chrono::hours(1)) + std::chrono::nanoseconds(std::llround(ms * 1e6));
}

fb::EngineRole role_of(replay_role role) {
  switch (role) {
    case replay_role::prefill:
      return fb::EngineRole::Prefill;
    case replay_role::decode:
      return fb::EngineRole::Decode;
    case replay_role::aggregated:
      break;
  }
  return fb::EngineRole::Aggregated;
}

class routing : public replay_policy {
 public:
  routing(const replay_fleet& fleet, const router::scheduler_spec& how, router::prediction_settings predictions,
          std::uint64_t seed)
      : fleet_(fleet),
        scheduler_(router::make_scheduler(how, seed)),
        board_(static_cast<std::uint32_t>(fleet.engines.size())),
        slots_(fleet.engines.size()),
        numbers_(fleet.engines.size()),
        predicted_(predictions),
        lookups_(predicted_),
        book_(predicted_),
        speeds_(board_),
        index_(*fleet.index) {
    all_ = &topology_.models[std::string(model)];
    all_->model = model;
  }

  bool uses_index() const override { return scheduler_->uses_cache(); }

  void engine_up(std::uint32_t engine, double) override {
    router::endpoint fresh;
    fresh.instance = instance_name(engine);
    fresh.url = "http://" + fresh.instance;
    fresh.role = role_of(fleet_.engines[engine].role);
    if (fresh.role != fb::EngineRole::Aggregated) fresh.group = fleet_.engines[engine].group;
    fresh.state = fb::EngineState::Ready;
    fresh.slot = slots_[engine] = *board_.acquire();
    numbers_[fresh.slot.index] = engine;
    fresh.block_size = fleet_.block_tokens;
    fresh.engine_block_size = fleet_.engines[engine].engine.block_size;
    fresh.total_blocks = fleet_.engines[engine].engine.total_blocks;
    fresh.max_model_len = fleet_.engines[engine].engine.max_model_len;
    fresh.kv_health = fb::KvHealth::Live;
    auto& endpoints = all_->endpoints;
    endpoints.insert(std::upper_bound(endpoints.begin(), endpoints.end(), fresh,
                                      [](const auto& a, const auto& b) { return a.instance < b.instance; }),
                     fresh);
    changed();
  }
  void engine_down(std::uint32_t engine, double) override {
    std::erase_if(all_->endpoints, [&](const auto& e) { return e.slot == slots_[engine]; });
    board_.release(slots_[engine]);
    changed();
  }
  void load_reported(std::uint32_t engine, const engine_load& load, double now_ms) override {
    board_.report(slots_[engine], load.running, load.waiting, load.kv_usage, at(now_ms));
  }

  std::optional<replay_choice> place(const replay_request& request, double now_ms) override {
    const auto now = at(now_ms);
    if (predicts()) {
      predicted_.expire(now);
      book_.expire(now);
    }
    const auto id = std::to_string(request.id);
    const auto asked = placement_of(request, id);
    router::overlaps cached;
    if (uses_index() && !asked.keys.empty()) {
      cached.known = true;
      cached.found = index_.lookup(asked.keys);
    }
    if (predicts() && !asked.keys.empty()) cached.predicted = lookups_.lookup(model, asked.key_mode, asked.keys);
    const auto& decided = scheduler_->decide(asked, all_, board_, cached, now);
    if (decided.serving.ranked.empty()) return std::nullopt;
    const auto& computes = *decided.prefills();
    const auto& answers = decided.serving.ranked.front();
    replay_choice choice;
    choice.engine = numbers_[computes.to->slot.index];
    if (computes.to != answers.to) choice.decode = numbers_[answers.to->slot.index];
    choice.prefill_tokens = asked.uncached_tokens(computes.expected_blocks());
    const auto blocks = asked.prompt_blocks();
    speeds_.routed(id, conditions_of(board_, slots_[choice.engine], {1, choice.prefill_tokens, blocks}, now), now);
    if (choice.decode)
      speeds_.routed(id + "/decode", conditions_of(board_, slots_[*choice.decode], {1, 0, blocks}, now), now);
    count(choice, blocks);
    if (predicts())
      book_.routed(id, std::string(model), asked.key_mode, computes.to->instance,
                   {asked.keys.begin(), asked.keys.end()}, now);
    return choice;
  }

  void placed_elsewhere(const replay_progress& of, double) override { count(of.choice, blocks_of(of)); }

  void prefilled(const replay_progress& of, double) override {
    board_.unreserve(slots_[of.choice.engine], of.choice.decode
                                                   ? router::load_share{1, of.choice.prefill_tokens, blocks_of(of)}
                                                   : router::load_share{0, of.choice.prefill_tokens, 0});
  }

  void ended(const replay_progress& of, double now_ms) override {
    const auto& choice = of.choice;
    const auto blocks = blocks_of(of);
    if (choice.decode) {
      if (!of.prefilled_ms) board_.unreserve(slots_[choice.engine], {1, choice.prefill_tokens, blocks});
      board_.unreserve(slots_[*choice.decode], {1, 0, blocks});
    } else {
      board_.unreserve(slots_[choice.engine], {1, of.prefilled_ms ? 0 : choice.prefill_tokens, blocks});
    }
    const auto id = std::to_string(of.id);
    if (predicts()) book_.finished(id, instance_name(choice.engine), at(now_ms));
    learn(of, id);
  }

 private:
  bool predicts() const { return uses_index() && predicted_.how().enabled; }
  void changed() {
    ++topology_.version;
    predicted_.follow(topology_);
  }
  std::uint64_t blocks_of(const replay_progress& of) const {
    return (of.prompt_tokens + fleet_.block_tokens - 1) / fleet_.block_tokens;
  }

  router::placement placement_of(const replay_request& request, std::string_view id) const {
    router::placement asked;
    asked.request_id = id;
    asked.key_mode = fb::KeyMode::Token;
    asked.prompt_tokens = request.prompt_tokens;
    asked.block_size = fleet_.block_tokens;
    asked.priority = request.priority;
    // The last token is always computed.
    asked.blocks = static_cast<std::uint32_t>(
        std::min<std::size_t>(request.blocks.size(), (request.prompt_tokens - 1) / fleet_.block_tokens));
    asked.keys = request.blocks.first(asked.blocks);
    return asked;
  }

  void count(const replay_choice& choice, std::uint64_t blocks) {
    board_.reserve(slots_[choice.engine], {1, choice.prefill_tokens, blocks});
    if (choice.decode) board_.reserve(slots_[*choice.decode], {1, 0, blocks});
  }

  void learn(const replay_progress& of, const std::string& id) {
    if (of.moved) {  // as a gateway's second attempts, of which nothing is learned either
      speeds_.finished(id, std::nullopt);
      return speeds_.finished(id + "/decode", std::nullopt);
    }
    const auto ms = [](std::optional<double> from, std::optional<double> to) {
      return from && to ? std::optional(*to - *from) : std::nullopt;
    };
    const auto decode_ms = ms(of.first_token_ms, of.ended_ms);
    if (of.choice.decode) {
      // As live, where nobody tells the router when the prompt was computed: the transfer is part of it.
      speeds_.finished(id, router::speed_result{ms(of.placed_ms, of.first_token_ms), std::nullopt, std::nullopt});
      speeds_.finished(id + "/decode", router::speed_result{std::nullopt, decode_ms, of.answered});
    } else {
      speeds_.finished(id, router::speed_result{ms(of.placed_ms, of.first_token_ms), decode_ms, of.answered});
    }
  }

  replay_fleet fleet_;
  std::unique_ptr<router::scheduler> scheduler_;
  router::topology topology_;
  router::model_endpoints* all_;
  router::load_board board_;
  std::vector<router::slot_ref> slots_;
  std::vector<std::uint32_t> numbers_;  // of engines, by slot index
  router::prediction_index predicted_;
  router::prediction_index::reader lookups_;
  router::prediction_book book_;
  router::speed_book speeds_;
  indexer::kv_index::reader index_;
};

}  // namespace

replay_policy_maker router_policy(router::scheduler_spec how, router::prediction_settings predictions) {
  return [=](const replay_fleet& fleet, std::uint64_t seed) -> std::unique_ptr<replay_policy> {
    return std::make_unique<routing>(fleet, how, predictions, seed);
  };
}

replay_policy_maker router_policy(const router::policy& how, router::prediction_settings predictions) {
  return router_policy(router::spec_of(how), predictions);
}

}  // namespace infernex::simulator
