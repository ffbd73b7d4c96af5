#include <algorithm>

#include "actors/router/plugins/all.hpp"
#include "actors/router/plugins/endpoint_words.hpp"

namespace infernex::router::plugins {
namespace {

/// For the prefill leg, prefill engines of groups somebody can answer in; for the other, decode engines, the leaders of
/// groups and aggregated engines; both of one group once one leg is chosen.
class pd_label final : public filter, public pd_words_owner {
 public:
  explicit pd_label(parameters& p) {
    p.read("pdLabelName", words_.role_label, "the label that says an engine's role; without it the announced role")
        .read("pdGroupLabelName", words_.group_label, "the label that names its PD group; without it the announced one")
        .read("prefillValue", words_.prefill, "the role of those that compute prompts")
        .read("decodeValue", words_.decode, "the role of those that answer")
        .read("leaderValue", words_.leader, "the role of those that take requests for a group of several nodes");
  }
  bool by_role() const override { return true; }
  void apply(const decision_context& context, std::vector<candidate>& kept) override {
    const auto* partner = context.partner ? context.partner->to : nullptr;
    const bool prefill = context.leg == serving_leg::prefill;
    if (prefill && !partner) collect_answering(context);
    std::erase_if(kept, [&](const candidate& c) {
      const auto role = words_.role(*c.to);
      if ((role == pd_role::prefill) != prefill) return true;
      const auto group = words_.group(*c.to);
      if (partner) return group != words_.group(*partner) || role == pd_role::aggregated;
      return prefill && !std::binary_search(answering_.begin(), answering_.end(), group);
    });
  }

 private:
  /// Of the whole model: the handler may ask for one prefill engine only.
  void collect_answering(const decision_context& context) {
    const auto& not_these = context.request.exclude;
    answering_.clear();
    for (const auto& e : context.model.endpoints) {
      const auto role = words_.role(e);
      if (e.ready() && (role == pd_role::decode || role == pd_role::leader) &&
          std::find(not_these.begin(), not_these.end(), e.instance) == not_these.end())
        answering_.push_back(words_.group(e));
    }
    std::sort(answering_.begin(), answering_.end());
  }

  std::vector<std::string_view> answering_;
};

}  // namespace

plugin_type pd_label_filter() {
  return {"filter-by-pd-label", "engines of the role that is wanted, of one PD group", "openFuyao hermes-router",
          [](parameters& p) -> plugin_type::made { return std::make_unique<pd_label>(p); }};
}

}  // namespace infernex::router::plugins
