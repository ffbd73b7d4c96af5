#pragma once

// What an engine's labels say of it, in the words of the platforms they come from, or else what it announces.

#include <array>
#include <string_view>

#include "actors/router/plugin.hpp"
#include "actors/router/topology.hpp"

namespace infernex::router::plugins {

inline constexpr std::string_view pd_role_label = "openfuyao.com/pdRole";
inline constexpr std::string_view pd_group_label = "openfuyao.com/pdGroupID";

enum class pd_role : std::uint8_t { aggregated, prefill, decode, leader };

struct pd_words {
  std::string role_label{pd_role_label};
  std::string group_label{pd_group_label};
  std::string prefill = "prefill";
  std::string decode = "decode";
  std::string leader = "leader";

  pd_role role(const endpoint& e) const {
    const auto said = e.label(role_label);
    if (said.empty()) {
      if (e.role == fb::EngineRole::Prefill) return pd_role::prefill;
      return e.role == fb::EngineRole::Decode ? pd_role::decode : pd_role::aggregated;
    }
    if (said == prefill) return pd_role::prefill;
    if (said == decode) return pd_role::decode;
    return said == leader ? pd_role::leader : pd_role::aggregated;
  }
  std::string_view group(const endpoint& e) const {
    const auto said = e.label(group_label);
    return said.empty() ? std::string_view(e.group) : said;
  }
};

/// The plugin of a configuration that says the words; others that go by roles and groups take them from it.
class pd_words_owner {
 public:
  virtual ~pd_words_owner() = default;
  const pd_words& words() const { return words_; }

 protected:
  pd_words words_;
};

/// For the others: the words of the first such plugin, or the usual ones.
class pd_words_taker {
 public:
  void take_from(const plugin& other) {
    const auto* owner = taken_ ? nullptr : dynamic_cast<const pd_words_owner*>(&other);
    if (!owner) return;
    words_ = owner->words();
    taken_ = true;
  }
  const pd_words& operator*() const { return words_; }
  const pd_words* operator->() const { return &words_; }

 private:
  pd_words words_;
  bool taken_ = false;
};

/// From near to far.
inline constexpr std::array<std::string_view, 4> topology_levels{"host", "rack", "zone", "region"};

inline std::string_view topology_word(const endpoint& e, std::size_t level) {
  constexpr std::array<std::string_view, 4> labels{"kubernetes.io/hostname", "topology.kubernetes.io/rack",
                                                   "topology.kubernetes.io/zone", "topology.kubernetes.io/region"};
  const auto said = e.label(labels[level]);
  return said.empty() && level == 0 ? std::string_view(e.node) : said;
}

/// The nearest level at which both are known to be in the same place; 4: none.
inline std::size_t nearest_common_level(const endpoint& a, const endpoint& b) {
  for (std::size_t level = 0; level < topology_levels.size(); ++level) {
    const auto place = topology_word(a, level);
    if (!place.empty() && place == topology_word(b, level)) return level;
  }
  return topology_levels.size();
}

}  // namespace infernex::router::plugins
