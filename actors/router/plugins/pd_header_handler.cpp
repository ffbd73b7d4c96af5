#include "actors/router/plugins/all.hpp"
#include "actors/router/plugins/endpoint_words.hpp"

namespace infernex::router::plugins {
namespace {

/// Both engines of a PD group by one profile: first the one that computes the prompt (that which the request's header
/// x-prefiller-host-port names, if it is there), then one of its group that answers. Where no pair is whole, an engine
/// that does both.
class pd_header final : public profile_handler {
 public:
  bool disaggregates() const override { return true; }
  void meet(const plugin& other) override { words_.take_from(other); }
  void handle(const decision_context& context, profile_runner& profiles) override {
    using leg = profile_runner::leg;
    const auto wanted = context.request.header("x-prefiller-host-port");
    const bool prefill =
        (!wanted.empty() && profiles.run({}, leg::prefill, {}, wanted)) || profiles.run({}, leg::prefill);
    if (prefill) {
      // The announced one; where labels name another, the filter that goes by them sees to it.
      const auto& group = profiles.best(leg::prefill)->to->group;
      if (profiles.run({}, leg::decode, group) && words_->role(*profiles.best(leg::decode)->to) != pd_role::aggregated)
        return;
    }
    profiles.drop(leg::prefill);
    if (!profiles.run({}, leg::decode)) return;
    // Without a filter that knows of whole pairs, the prefill engine may have been one that nobody answers for.
    const auto& decode = *profiles.best(leg::decode)->to;
    if (prefill && words_->role(decode) != pd_role::aggregated && !words_->group(decode).empty())
      profiles.run({}, leg::prefill, decode.group);
  }

 private:
  pd_words_taker words_;
};

}  // namespace

plugin_type pd_header_handler() {
  return {"pd-header-handler", "a prefill and a decode engine of one PD group, both by one profile",
          "openFuyao hermes-router", [](parameters&) -> plugin_type::made { return std::make_unique<pd_header>(); }};
}

}  // namespace infernex::router::plugins
