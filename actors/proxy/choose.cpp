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
  std::size_t named;
  bool not_preferred;
  std::int64_t load;
  friend auto operator<=>(const rank&, const rank&) = default;
};

rank prefill_rank(const group_member& m, const named_pair& named) {
  const auto& l = *m.load;
  return {naming(named.prefill, m.engine.address), false, l.active.load() + l.held.load() * 3 / 10};
}

rank decode_rank(const group_member& m, const named_pair& named, const action::choose_pair& wish) {
  return {naming(named.decode, m.engine.address), m.engine.address != wish.prefer_decode, m.load->active.load()};
}

const pair_state* state_of(const group_view& group, const group_member& prefill, const group_member& decode) {
  for (const auto& p : group.pairs) {
    if (p.prefill == prefill.engine.address && p.decode == decode.engine.address) return &p;
  }
  return nullptr;
}

bool open(const pair_state* pair) {
  return pair && (pair->breaker == fb::Breaker::Open ||
                  (pair->breaker == fb::Breaker::HalfOpen && pair->trial->load(std::memory_order_relaxed)));
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
  const group_member* prefill = nullptr;
  const group_member* decode = nullptr;
  const group_member* alone = nullptr;
  std::pair<rank, rank> best;
  rank best_alone{};
  bool no_protocol = false;
  for (const auto& d : group.members) {
    if (d.role != fb::EngineRole::Decode || !d.usable() || is_in(wish.avoid_decodes, d.engine.address)) continue;
    const auto of_decode = decode_rank(d, named, wish);
    if (!alone || of_decode < best_alone) {
      alone = &d;
      best_alone = of_decode;
    }
    if (wish.decode_only) continue;
    for (const auto& p : group.members) {
      if (p.role != fb::EngineRole::Prefill || !p.usable() || is_in(wish.avoid_prefills, p.engine.address)) continue;
      if (p.protocol == fb::KvProtocol::None) {
        no_protocol = true;
        continue;
      }
      if (open(state_of(group, p, d))) continue;
      const std::pair<rank, rank> of_pair{prefill_rank(p, named), of_decode};
      if (prefill && !(of_pair < best)) continue;
      best = of_pair;
      prefill = &p;
      decode = &d;
    }
  }
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
    chosen_pair chosen{{std::nullopt, alone->engine}, fb::KvProtocol::None, {}};
    chosen.charge = pair_charge(nullptr, alone->load, prompt_bytes);
    return chosen;
  }
  if (!alone) return no_pair{"no decode engine of the group is ready"};
  return no_pair{"no prefill engine of the group is ready"};
}

}  // namespace infernex::proxy
