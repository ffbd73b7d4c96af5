#include <algorithm>
#include <array>

#include "actors/router/plugins/all.hpp"
#include "actors/router/plugins/session_book.hpp"

namespace infernex::router::plugins {
namespace {

/// Standard or URL-safe alphabet, padded or not; other bytes make it empty.
std::string base64_decoded(std::string_view text) {
  std::string out;
  std::uint32_t bits = 0;
  int have = 0;
  while (!text.empty() && text.back() == '=') text.remove_suffix(1);
  for (const char c : text) {
    std::uint32_t six = 0;
    if (c >= 'A' && c <= 'Z')
      six = static_cast<std::uint32_t>(c - 'A');
    else if (c >= 'a' && c <= 'z')
      six = static_cast<std::uint32_t>(c - 'a') + 26;
    else if (c >= '0' && c <= '9')
      six = static_cast<std::uint32_t>(c - '0') + 52;
    else if (c == '+' || c == '-')
      six = 62;
    else if (c == '/' || c == '_')
      six = 63;
    else
      return {};
    bits = bits << 6 | six;
    have += 6;
    if (have < 8) continue;
    have -= 8;
    out.push_back(static_cast<char>(bits >> have & 0xff));
  }
  return out;
}

/// Which engine a request's session belongs to: either the request names it, or it is remembered. The two legs of a
/// request are remembered apart.
class sessions {
 public:
  explicit sessions(parameters& p, double unused_seconds) {
    std::size_t strategy = 0;
    std::string header;
    std::string token_header = "x-session-token";
    std::uint32_t most = 65'536;
    const auto read_limits = [&](parameters& in) {
      in.read("evictionTtlSeconds", unused_seconds, 0, 1e9, "how long an unused session is remembered")
          .ignore("evictionSweepSeconds", "old sessions are forgotten whenever one is looked up");
    };
    p.read_choice("strategy", strategy, {"encoded_endpoint_header", "session_id", "session_id_header"},
                  "the header holds the engine's name or address in base64, or a session's name that is remembered");
    p.read_choice("algorithm", strategy, {"encoded_endpoint_header", "session_id", "session_id_header"},
                  "the same by its older name");
    p.read("headerName", header, "the header, for either strategy").read("header", header, "the same");
    p.below(
        "encodedEndpointHeaderConfig",
        [&](parameters& in) { in.read("header", token_header, "the header with the engine's name"); },
        "for encoded_endpoint_header");
    p.below(
        "sessionIdConfig",
        [&](parameters& in) {
          in.each(
              "sources",
              [&](parameters& one) {
                std::string name;
                one.read("header", name, "a header with the session's name, the first that is there")
                    .ignore("attribute", "requests have no attributes here besides their headers");
                if (!name.empty()) headers_.push_back(name);
              },
              "where the session's name is looked for");
          read_limits(in);
        },
        "for session_id");
    read_limits(p);
    p.read("maxSessions", most, 1, 10'000'000, "sessions remembered at most")
        .ignore("profileName", "a session is remembered for each leg it is used in")
        .ignore("missThreshold", "a session follows its last request at once, for so does its cache");
    by_name_ = strategy != 0;
    if (!header.empty()) headers_ = {header};
    if (headers_.empty()) headers_ = {by_name_ ? "x-session-id" : token_header};
    for (auto& name : headers_)
      std::transform(name.begin(), name.end(), name.begin(),
                     [](char c) { return static_cast<char>(c >= 'A' && c <= 'Z' ? c + 32 : c); });
    for (auto& book : books_) book.set_limits({std::chrono::duration<double>(unused_seconds), most});
  }

  /// The index of the session's engine; all.size(): none, or not among these.
  std::size_t find(const decision_context& context, std::span<const candidate> all) {
    const auto word = session_of(context);
    if (word.empty()) return all.size();
    if (by_name_) {
      const auto name = books_[static_cast<std::size_t>(context.leg)].find(context.model.model, word, context.now);
      return index(all, [&](const endpoint& e) { return e.instance == name; });
    }
    const auto name = base64_decoded(word);
    return index(all, [&](const endpoint& e) { return e.instance == name || e.address() == name; });
  }

  void add_headers(std::vector<header_use>& into) const {
    for (const auto& name : headers_) into.push_back({name, !by_name_});
  }

  void routed(const decision_context& context, const candidate& to) {
    const auto word = session_of(context);
    if (by_name_ && !word.empty())
      books_[static_cast<std::size_t>(context.leg)].bind(context.model.model, word, to.to->instance, context.now);
  }

 private:
  template <class Is>
  static std::size_t index(std::span<const candidate> all, Is is) {
    const auto at = std::find_if(all.begin(), all.end(), [&](const candidate& c) { return is(*c.to); });
    return static_cast<std::size_t>(at - all.begin());
  }
  std::string_view session_of(const decision_context& context) const {
    for (const auto& name : headers_)
      if (const auto word = context.request.header(name); !word.empty()) return word;
    return {};
  }

  bool by_name_ = false;
  std::vector<std::string> headers_;
  std::array<session_book, 2> books_;
};

class session_score final : public scorer {
 public:
  explicit session_score(parameters& p) : sessions_(p, 600) {}
  void score(const decision_context& context, std::span<const candidate> all, std::span<double> out) override {
    std::fill(out.begin(), out.end(), 0.0);
    if (const auto at = sessions_.find(context, all); at < all.size()) out[at] = 1.0;
  }
  void routed(const decision_context& context, const candidate& to) override { sessions_.routed(context, to); }
  void add_headers(std::vector<header_use>& into) const override { sessions_.add_headers(into); }

 private:
  sessions sessions_;
};

class session_pin final : public filter {
 public:
  explicit session_pin(parameters& p) : sessions_(p, 300) {}
  void apply(const decision_context& context, std::vector<candidate>& kept) override {
    const auto at = sessions_.find(context, kept);
    if (at >= kept.size()) return;
    std::swap(kept.front(), kept[at]);
    kept.resize(1);
  }
  void routed(const decision_context& context, const candidate& to) override { sessions_.routed(context, to); }
  void add_headers(std::vector<header_use>& into) const override { sessions_.add_headers(into); }

 private:
  sessions sessions_;
};

}  // namespace

plugin_type session_affinity_scorer() {
  return {"session-affinity-scorer", "1 for the engine that served the request's session before", "llm-d router",
          [](parameters& p) -> plugin_type::made { return std::make_unique<session_score>(p); }};
}

plugin_type session_affinity_filter() {
  return {"session-affinity-filter", "only the engine that served the request's session before, if it is there",
          "llm-d router", [](parameters& p) -> plugin_type::made { return std::make_unique<session_pin>(p); }};
}

}  // namespace infernex::router::plugins
