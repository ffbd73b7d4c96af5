#include <charconv>
#include <optional>

#include "actors/router/plugins/all.hpp"

namespace infernex::router::plugins {
namespace {

struct token_range {
  std::uint64_t min = 0;
  std::uint64_t max = 0;
  bool has(std::uint64_t n) const { return min <= n && n <= max; }
};

std::optional<std::uint64_t> number(std::string_view text) {
  while (!text.empty() && text.front() == ' ') text.remove_prefix(1);
  while (!text.empty() && text.back() == ' ') text.remove_suffix(1);
  std::uint64_t n = 0;
  const auto end = text.data() + text.size();
  const auto [stop, failed] = std::from_chars(text.data(), end, n);
  return failed == std::errc{} && stop == end ? std::optional(n) : std::nullopt;
}

/// `0-2048`.
std::optional<token_range> range_of(std::string_view text) {
  const auto dash = text.find('-');
  if (dash == text.npos) return std::nullopt;
  const auto min = number(text.substr(0, dash));
  const auto max = number(text.substr(dash + 1));
  return min && max && *min <= *max ? std::optional(token_range{*min, *max}) : std::nullopt;
}

constexpr double best_outside = 0.3;
constexpr double unlabelled = 0.5;

/// Inside the range: 0.3 + 0.7 * (0.7 / (1 + width / 10000) + 0.3 * headroom / width), 1 for a range of one length.
/// Outside: 0.3 / (1 + distance / 1000).
double fit(std::uint64_t length, const token_range& r) {
  if (!r.has(length)) {
    const auto distance = length > r.max ? length - r.max : r.min - length;
    return best_outside / (1.0 + static_cast<double>(distance) / 1000.0);
  }
  const auto width = static_cast<double>(r.max - r.min);
  if (width == 0) return 1.0;
  const auto headroom = static_cast<double>(r.max - length);
  return best_outside + (1.0 - best_outside) * (0.7 / (1.0 + width / 10000.0) + 0.3 * headroom / width);
}

class context_length final : public scorer {
 public:
  explicit context_length(parameters& p) : drops_(*this) {
    p.read("label", label_, "the engines' label that says `min-max` tokens")
        .read("enableFiltering", filtering_, "also drop engines whose range the prompt is not in");
    if (label_.empty()) p.complain("label", "the name of a label");
  }
  filter* filters() override { return filtering_ ? &drops_ : nullptr; }
  void score(const decision_context& context, std::span<const candidate> all, std::span<double> out) override {
    const auto length = context.request.tokens();
    for (std::size_t i = 0; i < all.size(); ++i) {
      const auto text = all[i].to->label(label_);
      const auto range = range_of(text);
      out[i] = text.empty() ? unlabelled : range ? fit(length, *range) : 0.0;
    }
  }

 private:
  struct outside final : filter {
    explicit outside(const context_length& of) : of_(of) {}
    void apply(const decision_context& context, std::vector<candidate>& kept) override {
      const auto length = context.request.tokens();
      std::erase_if(kept, [&](const candidate& c) {
        const auto text = c.to->label(of_.label_);
        const auto range = range_of(text);
        return !text.empty() && !(range && range->has(length));
      });
    }
    const context_length& of_;
  };

  std::string label_ = "llm-d.ai/context-length-range";
  bool filtering_ = false;
  outside drops_;
};

}  // namespace

plugin_type context_length_aware() {
  return {"context-length-aware", "how well the prompt's length fits the range an engine is labelled with",
          "llm-d router", [](parameters& p) -> plugin_type::made { return std::make_unique<context_length>(p); }};
}

}  // namespace infernex::router::plugins
