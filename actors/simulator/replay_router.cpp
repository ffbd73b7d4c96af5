#include "actors/simulator/replay_router.hpp"

#include <algorithm>
#include <array>
#include <cmath>

#include "actors/router/prediction_book.hpp"

namespace infernex::simulator {

namespace {

using router::clock_point;

constexpr std::array<std::string_view, 3> fleets{"aggregated", "prefill", "decode"};

/// The clock of a router that has been up for an hour when the replay begins.
clock_point at(double ms) {
  return clock_point(std::chrono::hours(1)) + std::chrono::nanoseconds(std::llround(ms * 1e6));
}

class routing : public replay_policy {
 public:
  routing(const replay_fleet& fleet, router::policy how, router::prediction_settings predictions, std::uint64_t seed)
      : fleet_(fleet),
        how_(how),
        board_(static_cast<std::uint32_t>(fleet.engines.size())),
        slots_(fleet.engines.size()),
        predicted_(predictions),
        lookups_(predicted_),
        book_(predicted_),
        index_(*fleet.index) {
    turn_.turn = seed;
    for (const auto name : fleets) topology_.models[std::string(name)].model = name;
  }

  bool uses_index() const override { return how_.how == router::strategy::kv_aware; }

  void engine_up(std::uint32_t engine, double) override {
    router::endpoint fresh;
    fresh.instance = instance_name(engine);
    fresh.url = "http://" + fresh.instance;
    fresh.role = fb::EngineRole::Aggregated;
    fresh.state = fb::EngineState::Ready;
    fresh.slot = slots_[engine] = *board_.acquire();
    fresh.block_size = fleet_.block_tokens;
    fresh.total_blocks = fleet_.engines[engine].engine.total_blocks;
    fresh.max_model_len = fleet_.engines[engine].engine.max_model_len;
    fresh.kv_health = fb::KvHealth::Live;
    auto& all = endpoints_of(engine);
    all.insert(std::upper_bound(all.begin(), all.end(), fresh,
                                [](const auto& a, const auto& b) { return a.instance < b.instance; }),
               fresh);
    ++topology_.version;
    predicted_.follow(topology_);
  }
  void engine_down(std::uint32_t engine, double) override {
    std::erase_if(endpoints_of(engine), [&](const auto& e) { return e.slot == slots_[engine]; });
    board_.release(slots_[engine]);
    ++topology_.version;
    predicted_.follow(topology_);
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
    const auto* alone = candidates(replay_role::aggregated);
    if (!alone->endpoints.empty()) return choose(request, *alone, now);
    auto choice = choose(request, *candidates(replay_role::prefill), now);
    if (!choice) return choice;
    auto by_load = how_;
    if (by_load.how == router::strategy::kv_aware) by_load.how = router::strategy::least_load;
    const auto decode = router::decide(placement_of(request, {}), candidates(replay_role::decode), board_, {}, by_load,
                                       decode_turn_, now);
    if (decode.ranked.empty()) return std::nullopt;
    choice->decode = number_of(*decode.ranked.front().to);
    count(*choice);
    return choice;
  }

  void placed_elsewhere(const replay_progress& of, double) override { count(of.choice); }
  void prefilled(const replay_progress& of, double) override {
    board_.unreserve(slots_[of.choice.engine], {of.choice.decode ? 1U : 0U, of.choice.prefill_tokens});
  }
  void ended(const replay_progress& of, double now_ms) override {
    if (!of.prefilled_ms) board_.unreserve(slots_[of.choice.engine], {0, of.choice.prefill_tokens});
    if (of.choice.decode) {
      if (!of.prefilled_ms) board_.unreserve(slots_[of.choice.engine], {1, 0});
      board_.unreserve(slots_[*of.choice.decode], {1, 0});
    } else {
      board_.unreserve(slots_[of.choice.engine], {1, 0});
    }
    if (predicts()) book_.finished(std::to_string(of.id), instance_name(of.choice.engine), at(now_ms));
  }

 private:
  bool predicts() const { return uses_index() && predicted_.how().enabled; }
  std::vector<router::endpoint>& endpoints_of(std::uint32_t engine) {
    const auto role = static_cast<std::size_t>(fleet_.engines[engine].role);
    return topology_.models.find(fleets[role])->second.endpoints;
  }
  const router::model_endpoints* candidates(replay_role role) const {
    return &topology_.models.find(fleets[static_cast<std::size_t>(role)])->second;
  }
  std::uint32_t number_of(const router::endpoint& chosen) const {
    return static_cast<std::uint32_t>(std::find(slots_.begin(), slots_.end(), chosen.slot) - slots_.begin());
  }
  router::placement placement_of(const replay_request& request, std::string_view id) const {
    router::placement asked;
    asked.request_id = id;
    asked.key_mode = fb::KeyMode::Token;
    asked.prompt_tokens = request.prompt_tokens;
    asked.block_size = fleet_.block_tokens;
    // The last token is always computed.
    asked.blocks = static_cast<std::uint32_t>(
        std::min<std::size_t>(request.blocks.size(), (request.prompt_tokens - 1) / fleet_.block_tokens));
    return asked;
  }

  std::optional<replay_choice> choose(const replay_request& request, const router::model_endpoints& among,
                                      clock_point now) {
    const auto id = std::to_string(request.id);
    const auto asked = placement_of(request, id);
    const auto keys = request.blocks.first(asked.blocks);
    router::overlaps cached;
    if (uses_index() && !keys.empty()) {
      cached.known = true;
      cached.found = index_.lookup(keys);
    }
    if (predicts() && !keys.empty()) cached.predicted = lookups_.lookup(among.model, asked.key_mode, keys);
    const auto decided = router::decide(asked, &among, board_, cached, how_, turn_, now);
    if (decided.ranked.empty()) return std::nullopt;
    const auto& chosen = decided.ranked.front();
    replay_choice choice;
    choice.engine = number_of(*chosen.to);
    choice.prefill_tokens = router::expected_prefill(asked, chosen.expected_blocks());
    if (&among == candidates(replay_role::aggregated)) count(choice);
    if (predicts()) book_.routed(id, among.model, asked.key_mode, chosen.to->instance, {keys.begin(), keys.end()}, now);
    return choice;
  }

  void count(const replay_choice& choice) {
    board_.reserve(slots_[choice.engine], {1, choice.prefill_tokens});
    if (choice.decode) board_.reserve(slots_[*choice.decode], {1, 0});
  }

  replay_fleet fleet_;
  router::policy how_;
  router::topology topology_;
  router::load_board board_;
  std::vector<router::slot_ref> slots_;
  router::prediction_index predicted_;
  router::prediction_index::reader lookups_;
  router::prediction_book book_;
  indexer::kv_index::reader index_;
  router::rotation turn_;
  router::rotation decode_turn_;
};

}  // namespace

replay_policy_maker router_policy(router::policy how, router::prediction_settings predictions) {
  return [=](const replay_fleet& fleet, std::uint64_t seed) -> std::unique_ptr<replay_policy> {
    return std::make_unique<routing>(fleet, how, predictions, seed);
  };
}

}  // namespace infernex::simulator
