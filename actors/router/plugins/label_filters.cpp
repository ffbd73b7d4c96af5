#include <algorithm>
#include <array>

#include "actors/router/plugins/all.hpp"

namespace infernex::router::plugins {
namespace {

constexpr std::string_view role_label = "llm-d.ai/role";

/// What an engine's role is called there; one that says nothing is what it announces, and empty where that is nothing
/// in particular.
std::string_view role_word(const endpoint& e) {
  if (const auto said = e.label(role_label); !said.empty()) return said;
  if (e.role == fb::EngineRole::Prefill) return "prefill";
  return e.role == fb::EngineRole::Decode ? "decode" : std::string_view{};
}

class one_of_roles final : public filter {
 public:
  one_of_roles(std::initializer_list<std::string_view> words, bool without_role)
      : words_(words), unlabelled_(without_role) {}
  bool by_role() const override { return true; }
  void apply(const decision_context&, std::vector<candidate>& kept) override {
    std::erase_if(kept, [&](const candidate& c) {
      const auto word = role_word(*c.to);
      return word.empty() ? !unlabelled_ : std::find(words_.begin(), words_.end(), word) == words_.end();
    });
  }

 private:
  std::vector<std::string_view> words_;
  bool unlabelled_;
};

/// Kubernetes' label selector: everything said of it must hold.
class label_selector final : public filter {
 public:
  explicit label_selector(parameters& p) {
    p.read("matchLabels", equal_, "labels and the values they must have")
        .each(
            "matchExpressions",
            [this](parameters& one) {
              expression e;
              one.read("key", e.key, "the label")
                  .read_choice("operator", e.how, {"In", "NotIn", "Exists", "DoesNotExist"}, "what must hold of it")
                  .read("values", e.values, "for In and NotIn");
              if (e.key.empty()) one.complain("key", "the name of a label");
              if (e.how < 2 && e.values.empty()) one.complain("values", "at least one, for In and NotIn");
              expressions_.push_back(std::move(e));
            },
            "what else must hold: key, operator, values");
  }
  bool by_role() const override {
    return std::any_of(equal_.begin(), equal_.end(), [](auto& one) { return one.first == role_label; }) ||
           std::any_of(expressions_.begin(), expressions_.end(), [](auto& one) { return one.key == role_label; });
  }
  void apply(const decision_context&, std::vector<candidate>& kept) override {
    std::erase_if(kept, [&](const candidate& c) { return !matches(*c.to); });
  }

 private:
  struct expression {
    std::string key;
    std::size_t how = 0;
    std::vector<std::string> values;
  };

  static const std::string* value(const endpoint& e, std::string_view key) {
    for (const auto& [name, text] : e.labels)
      if (name == key) return &text;
    return nullptr;
  }
  static bool holds(const expression& one, const endpoint& e) {
    const auto* text = value(e, one.key);
    const bool listed = text && std::find(one.values.begin(), one.values.end(), *text) != one.values.end();
    return std::array{listed, !listed, text != nullptr, text == nullptr}[one.how];
  }
  bool matches(const endpoint& e) const {
    return std::all_of(equal_.begin(), equal_.end(),
                       [&](const auto& one) {
                         const auto* text = value(e, one.first);
                         return text && *text == one.second;
                       }) &&
           std::all_of(expressions_.begin(), expressions_.end(), [&](const auto& one) { return holds(one, e); });
  }

  std::vector<std::pair<std::string, std::string>> equal_;
  std::vector<expression> expressions_;
};

}  // namespace

plugin_type label_selector_filter() {
  return {"label-selector-filter",
          "only engines with these labels",
          "llm-d router",
          [](parameters& p) -> plugin_type::made { return std::make_unique<label_selector>(p); },
          {"by-label-selector"}};
}

plugin_type prefill_filter() {
  return {"prefill-filter", "only engines that compute prompts for others, by label llm-d.ai/role or as announced",
          "llm-d router", [](parameters&) -> plugin_type::made {
            const auto words = {std::string_view("prefill"), std::string_view("encode-prefill"),
                                std::string_view("prefill-decode"), std::string_view("both"),
                                std::string_view("encode-prefill-decode")};
            return std::make_unique<one_of_roles>(words, false);
          }};
}

plugin_type decode_filter() {
  return {"decode-filter", "only engines that answer, by label llm-d.ai/role or as announced; those without one too",
          "llm-d router", [](parameters&) -> plugin_type::made {
            const auto words = {std::string_view("decode"), std::string_view("prefill-decode"),
                                std::string_view("both"), std::string_view("encode-prefill-decode")};
            return std::make_unique<one_of_roles>(words, true);
          }};
}

}  // namespace infernex::router::plugins
