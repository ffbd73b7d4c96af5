#include "actors/proxy/choose.hpp"

#include <algorithm>

namespace infernex::proxy {
namespace {

bool is_in(const std::vector<std::string>& list, const std::string& what) {
  return std::find(list.begin(), list.end(), what) != list.end();
}

/// The next item of a list with commas, without blanks; empty at the end.
std::string_view next_item(std::string_view& list) {
  while (!list.empty()) {
    auto item = list.substr(0, list.find(','));
    list.remove_prefix(std::min(list.size(), item.size() + 1));
    const auto begin = item.find_first_not_of(" \t");
    if (begin == std::string_view::npos) continue;
    item.remove_prefix(begin);
    return item.substr(0, item.find_last_not_of(" \t") + 1);
  }
  return {};
}

/// How far up its list a request names this engine; lower is better, unnamed is worst.
std::size_t naming(std::string_view list, const std::string& address) {
  std::size_t at = 0;
  for (auto item = next_item(list); !item.empty(); item = next_item(list), ++at) {
    if (item == address) return at;
  }
  return std::string_view::npos;
}

struct rank {
  bool refuses;
  bool gave_back;
  std::size_t named;
  bool not_preferred;
  std::int64_t load;
  friend auto operator<=>(const rank&, const rank&) = default;
};

rank prefill_rank(const group_member& m, const named_pair& named) {
  const auto& l = *m.load;
  return {l.refuses.load(std::memory_order_relaxed), false, naming(named.prefill, m.engine.address), false,
          l.active.load() + l.held.load() * 3 / 10};
}

rank decode_rank(const group_member& m, const named_pair& named, const action::choose_pair& wish) {
  return {m.load->refuses.load(std::memory_order_relaxed), m.engine.address == wish.gave_back,
          naming(named.decode, m.engine.address), m.engine.address != wish.prefer_decode, m.load->active.load()};
}

struct ranked_member {
  rank at;
  const group_member* member;
};

/// Best first; equals stay as they are listed.
void sort_by_rank(std::vector<ranked_member>& members) {
  std::stable_sort(members.begin(), members.end(), [](const auto& a, const auto& b) { return a.at < b.at; });
}

const ranked_member* best_of(const std::vector<ranked_member>& members) {
  const auto best =
      std::min_element(members.begin(), members.end(), [](const auto& a, const auto& b) { return a.at < b.at; });
  return best == members.end() ? nullptr : &*best;
}

const pair_state* state_of(const group_view& group, const group_member& prefill, const group_member& decode) {
  for (const auto& p : group.pairs) {
    if (p.prefill == prefill.engine.address && p.decode == decode.engine.address) return &p;
  }
  return nullptr;
}

bool is_shut(const pair_state& pair) {
  return pair.breaker == fb::Breaker::Open ||
         (pair.breaker == fb::Breaker::HalfOpen && pair.trial->load(std::memory_order_relaxed));
}

using address_pair = std::pair<std::string_view, std::string_view>;

/// Pairs that are not to be used, sorted.
std::vector<address_pair> shut_pairs(const group_view& group) {
  std::vector<address_pair> shut;
  for (const auto& p : group.pairs) {
    if (is_shut(p)) shut.emplace_back(p.prefill, p.decode);
  }
  std::sort(shut.begin(), shut.end());
  return shut;
}

struct member_pair {
  const group_member* prefill = nullptr;
  const group_member* decode = nullptr;
};

/// The best prefill engine that has a decode engine left, with the best of those; of prefill engines of one rank the
/// one whose decode engine is best. O(P log P + D log D + shut pairs), O(P + D) where none is shut.
member_pair best_pair(std::vector<ranked_member> prefills, std::vector<ranked_member> decodes,
                      const std::vector<address_pair>& shut) {
  if (prefills.empty() || decodes.empty()) return {};
  if (shut.empty()) return {best_of(prefills)->member, best_of(decodes)->member};
  sort_by_rank(prefills);
  sort_by_rank(decodes);
  const ranked_member* prefill = nullptr;
  auto decode = decodes.cend();
  for (const auto& p : prefills) {
    if (prefill && prefill->at < p.at) break;
    const auto left = std::find_if(decodes.cbegin(), decode, [&](const ranked_member& d) {
      return !std::binary_search(shut.begin(), shut.end(),
                                 address_pair(p.member->engine.address, d.member->engine.address));
    });
    if (left == decode) continue;
    prefill = &p;
    decode = left;
  }
  return prefill ? member_pair{prefill->member, decode->member} : member_pair{};
}

/// The best of those that compute prompts too, which SGLang's do not. Null: none.
const group_member* best_alone(const std::vector<ranked_member>& decodes) {
  const ranked_member* best = nullptr;
  for (const auto& d : decodes)
    if (d.member->protocol != fb::KvProtocol::Sglang && (!best || d.at < best->at)) best = &d;
  return best ? best->member : nullptr;
}

chosen_pair take_alone(const group_member& decode, std::size_t prompt_bytes) {
  chosen_pair chosen{{std::nullopt, decode.engine}, fb::KvProtocol::None, {}};
  chosen.charge = pair_charge(nullptr, decode.load, prompt_bytes);
  return chosen;
}

}  // namespace

std::int64_t prefill_score(std::size_t prompt_bytes) {
  return static_cast<std::int64_t>((static_cast<double>(prompt_bytes) / 4 * 0.0345 + 120.0745) * 1000);
}
std::int64_t decode_score(std::size_t prompt_bytes) { return static_cast<std::int64_t>(prompt_bytes) * 1000; }

pair_charge::pair_charge(std::shared_ptr<engine_load> prefill, std::shared_ptr<engine_load> decode,
                         std::size_t prompt_bytes)
    : prefill_(std::move(prefill)), decode_(std::move(decode)), decoding_(decode_score(prompt_bytes)) {
  if (prefill_) {
    active_ = held_ = prefill_score(prompt_bytes);
    ++prefill_->requests;
    prefill_->active += active_;
    prefill_->held += held_;
  }
  ++decode_->requests;
  decode_->active += decoding_;
}

pair_charge& pair_charge::operator=(pair_charge&& other) noexcept {
  release();
  prefill_ = std::exchange(other.prefill_, nullptr);
  decode_ = std::exchange(other.decode_, nullptr);
  trial_ = std::exchange(other.trial_, nullptr);
  active_ = std::exchange(other.active_, 0);
  held_ = std::exchange(other.held_, 0);
  decoding_ = std::exchange(other.decoding_, 0);
  return *this;
}

void pair_charge::prefilled() {
  if (prefill_) prefill_->active -= std::exchange(active_, 0);
}

void pair_charge::fetched() {
  prefilled();
  if (prefill_) prefill_->held -= std::exchange(held_, 0);
}

void pair_charge::release() {
  fetched();
  // However it ended: where nobody reports failure or success (the client left), the next request is a trial again.
  if (const auto trial = std::exchange(trial_, nullptr)) trial->store(false, std::memory_order_relaxed);
  if (auto prefill = std::exchange(prefill_, nullptr)) --prefill->requests;
  if (auto decode = std::exchange(decode_, nullptr)) {
    decode->active -= decoding_;
    --decode->requests;
  }
}

named_pair read_names(std::string_view prefill, std::string_view decode) {
  named_pair named{std::string(prefill), std::string(decode), prefill == "none"};
  if (named.alone) named.prefill.clear();
  return named;
}

std::string stranger_of(const group_view& group, const named_pair& named) {
  const auto check = [&group](fb::EngineRole role, std::string_view list) {
    for (auto item = next_item(list); !item.empty(); item = next_item(list)) {
      if (!group.find(role, item)) return std::string(item);
    }
    return std::string();
  };
  auto stranger = check(fb::EngineRole::Prefill, named.prefill);
  return stranger.empty() ? check(fb::EngineRole::Decode, named.decode) : stranger;
}

std::variant<chosen_pair, no_pair> choose(const group_view& group, const action::choose_pair& wish,
                                          const named_pair& named, std::size_t prompt_bytes, bool local_prefill) {
  std::vector<ranked_member> prefills;
  std::vector<ranked_member> decodes;
  bool no_protocol = false;
  for (const auto& m : group.members) {
    if (!m.usable()) continue;
    if (m.role == fb::EngineRole::Decode) {
      if (!is_in(wish.avoid_decodes, m.engine.address)) decodes.push_back({decode_rank(m, named, wish), &m});
    } else if (m.role == fb::EngineRole::Prefill && !wish.decode_only) {
      if (is_in(wish.avoid_prefills, m.engine.address)) continue;
      if (m.protocol == fb::KvProtocol::None) {
        no_protocol = true;
      } else {
        prefills.push_back({prefill_rank(m, named), &m});
      }
    }
  }
  const bool any_decode = !decodes.empty();
  const auto* alone = best_alone(decodes);
  const auto [prefill, decode] = best_pair(std::move(prefills), std::move(decodes), shut_pairs(group));
  if (prefill) {
    chosen_pair chosen{{prefill->engine, decode->engine}, prefill->protocol, {}};
    chosen.charge = pair_charge(prefill->load, decode->load, prompt_bytes);
    // Lost to another thread in this instant: it is one more trial, no harm.
    if (const auto* pair = state_of(group, *prefill, *decode); pair && pair->breaker == fb::Breaker::HalfOpen) {
      pair->trial->store(true, std::memory_order_relaxed);
      chosen.charge.hold_trial(pair->trial);
    }
    return chosen;
  }
  if (alone && no_protocol && !wish.decode_only)
    return no_pair{"how its prefill engines hand KV blocks over is neither announced nor configured (proxy.protocol)"};
  if (alone && (local_prefill || wish.decode_only)) {
    return take_alone(*alone, prompt_bytes);
  }
  if (!any_decode) return no_pair{"no decode engine of the group is ready"};
  return no_pair{"no prefill engine of the group is ready"};
}

std::optional<chosen_pair> choose_alone(const group_view& group, const named_pair& named, std::size_t prompt_bytes) {
  std::vector<ranked_member> decodes;
  for (const auto& m : group.members) {
    if (m.role != fb::EngineRole::Decode || !m.usable()) continue;
    const auto at = decode_rank(m, named, {});
    if (!at.refuses && (named.decode.empty() || at.named != std::string_view::npos)) decodes.push_back({at, &m});
  }
  const auto* best = best_alone(decodes);
  if (!best) return std::nullopt;
  return take_alone(*best, prompt_bytes);
}

void note_refusal(const group_view& group, const action::report& what) {
  if (!what.refused) return;
  const bool decode = what.failed == leg::decode || !what.pair.prefill;
  const auto role = decode ? fb::EngineRole::Decode : fb::EngineRole::Prefill;
  const auto& address = decode ? what.pair.decode.address : what.pair.prefill->address;
  // All ranks that are reached there.
  for (const auto& m : group.members)
    if (m.role == role && m.engine.address == address) m.load->refuses.store(true, std::memory_order_relaxed);
}

}  // namespace infernex::proxy
