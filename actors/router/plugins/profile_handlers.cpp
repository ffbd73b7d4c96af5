#include "actors/router/plugins/all.hpp"

namespace infernex::router::plugins {
namespace {

class single_profile final : public profile_handler {
 public:
  void handle(const decision_context&, profile_runner& profiles) override {
    profiles.run({}, profile_runner::leg::decode);
  }
};

/// The decode engine first, then, if its decider finds it worth while, a prefill engine of the same PD group.
class disaggregated_profiles final : public profile_handler {
 public:
  explicit disaggregated_profiles(parameters& p) {
    p.below(
        "profiles",
        [this](parameters& names) {
          names.read("decode", decode_, "profile that chooses the engine that answers")
              .read("prefill", prefill_, "profile that chooses the engine that computes the prompt")
              .ignore("encode", "no encode engines are known here");
        },
        "names of the profiles");
    p.below(
        "deciders",
        [this](parameters& names) {
          names.read("prefill", decider_, "plugin that decides whether a request is disaggregated")
              .ignore("encode", "no encode engines are known here");
        },
        "names of the deciders");
  }
  bool disaggregates() const override { return true; }
  std::string_view decider_name() const override { return decider_; }
  void use(disaggregation_decider& decider) override { decides_ = &decider; }
  std::vector<std::string_view> profiles() const override { return {decode_, prefill_}; }

  void handle(const decision_context& context, profile_runner& profiles) override {
    using leg = profile_runner::leg;
    if (!profiles.run(decode_, leg::decode)) return;
    const auto& decode = *profiles.best(leg::decode);
    // An empty group would be any group: a pair is within one.
    if (decode.to->role != fb::EngineRole::Decode || decode.to->group.empty()) return;
    if (decides_ && !decides_->disaggregate(context, decode)) return;
    profiles.run(prefill_, leg::prefill, decode.to->group);
  }

 private:
  std::string decode_ = "decode";
  std::string prefill_ = "prefill";
  std::string decider_;
  disaggregation_decider* decides_ = nullptr;
};

}  // namespace

plugin_type single_profile_handler() {
  return {"single-profile-handler", "one profile, aggregated engines", "Gateway API Inference Extension",
          [](parameters&) -> plugin_type::made { return std::make_unique<single_profile>(); }};
}

plugin_type disaggregated_profile_handler() {
  return {"disagg-profile-handler",
          "a decode engine, then a prefill engine of its group where it is worth while",
          "llm-d router",
          [](parameters& p) -> plugin_type::made { return std::make_unique<disaggregated_profiles>(p); },
          {"pd-profile-handler"}};
}

}  // namespace infernex::router::plugins
