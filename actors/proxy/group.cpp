#include "actors/proxy/group.hpp"

#include <algorithm>
#include <charconv>

#include "messages/view.hpp"

namespace infernex::proxy {

result<std::string> address_of(std::string_view text) {
  constexpr std::string_view scheme = "http://";
  auto rest = text;
  if (rest.starts_with(scheme)) rest.remove_prefix(scheme.size());
  rest = rest.substr(0, rest.find('/'));
  const auto colon = rest.rfind(':');
  std::uint16_t port = 0;
  const auto number = colon == std::string_view::npos ? std::string_view{} : rest.substr(colon + 1);
  const auto [end, problem] = std::from_chars(number.data(), number.data() + number.size(), port);
  const bool bad_host = colon == 0 || rest.find_first_of(" @?#\\\"\r\n\t") != std::string_view::npos;
  if (number.empty() || problem != std::errc{} || end != number.data() + number.size() || port == 0 || bad_host)
    return error{errc::invalid_request, "not `host:port`: " + std::string(text.substr(0, 200))};
  return std::string(rest);
}

std::size_t group_view::usable(fb::EngineRole role) const {
  return static_cast<std::size_t>(
      std::count_if(members.begin(), members.end(), [role](const auto& m) { return m.role == role && m.usable(); }));
}

const group_member* group_view::find(fb::EngineRole role, std::string_view address) const {
  const auto found = std::find_if(members.begin(), members.end(),
                                  [&](const auto& m) { return m.role == role && m.engine.address == address; });
  return found == members.end() ? nullptr : &*found;
}

std::vector<std::string> group_view::addresses(fb::EngineRole role) const {
  std::vector<std::string> all;
  for (const auto& m : members) {
    if (m.role == role && (all.empty() || all.back() != m.engine.address)) all.push_back(m.engine.address);
  }
  return all;
}

bool group_view::has_failed(const std::string& prefill, const std::string& decode) const {
  return std::any_of(pairs.begin(), pairs.end(),
                     [&](const auto& p) { return p.prefill == prefill && p.decode == decode; });
}

group::group(group_settings how) : how_(std::move(how)), breaker_(how_.breaker) {
  // Checked where the configuration is read; what is no address is left out here.
  for (const auto& a : how_.prefill) static_cast<void>(add(fb::EngineRole::Prefill, a));
  for (const auto& a : how_.decode) static_cast<void>(add(fb::EngineRole::Decode, a));
}

group::record* group::find(fb::EngineRole role, std::string_view address) {
  for (auto& [name, r] : members_) {
    if (r.is.role == role && r.is.engine.address == address) return &r;
  }
  return nullptr;
}

bool group::on_announce(const fb::EngineAnnounce& engine, clock_point now) {
  if (text(engine.pd_group()) != how_.name || engine.role() == fb::EngineRole::Aggregated) return false;
  const std::string name(text(engine.instance()));
  const auto address = address_of(text(engine.url()));
  auto known = members_.find(name);
  const bool fresh = known == members_.end();
  now_ = now;
  if (const auto ban = address ? banned_.find(*address) : banned_.end(); ban != banned_.end()) {
    ban->second = now;
    return false;
  }
  const auto of_group = model();
  const bool other_model = !of_group.empty() && of_group != text(engine.model());
  if (!address || other_model || (fresh && members_.size() >= how_.max_engines)) {
    ++refused_;
    return false;
  }
  bool listed = false;
  auto load = std::make_shared<engine_load>();
  // The same engine, so far known by its address alone.
  if (auto by_address = members_.find(*address); fresh && by_address != members_.end()) {
    listed = by_address->second.listed;
    load = by_address->second.is.load;
    members_.erase(by_address);
  }
  if (fresh) {
    known = members_.emplace(name, record{}).first;
    known->second.listed = listed;
    known->second.is.load = std::move(load);
  }
  auto& r = known->second;
  const auto before = r.is;
  const bool was_announced = r.announced;
  r.announced = true;
  r.heard = now;
  r.is.role = engine.role();
  r.is.state = engine.state();
  r.is.model = text(engine.model());
  auto& e = r.is.engine;
  e.instance = name;
  e.url = text(engine.url());
  e.address = *address;
  e.rank = engine.data_parallel_rank().has_value() ? std::optional(*engine.data_parallel_rank()) : std::nullopt;
  // A start that could not be measured this time is the one that was known.
  if (engine.engine_epoch().has_value()) e.epoch = *engine.engine_epoch();
  e.bootstrap_port = how_.bootstrap_port;
  if (const auto* kv = engine.kv_transfer()) {
    r.is.protocol = kv->protocol();
    r.is.connector = text(kv->connector());
    e.engine_id = text(kv->engine_id());
    if (kv->bootstrap_port().has_value()) e.bootstrap_port = *kv->bootstrap_port();
  }
  // An engine that was started anew may well work again.
  const bool another_start = before.engine.epoch && e.epoch != before.engine.epoch;
  const bool anew = before.engine.engine_id != e.engine_id || another_start;
  if (anew) breaker_.forget(e.address);
  if (anew || before.state != r.is.state) r.is.load->refuses = false;
  return fresh || !was_announced || before.engine != e || before.state != r.is.state || before.role != r.is.role ||
         before.protocol != r.is.protocol || before.model != r.is.model;
}

bool group::on_probe(const std::string& address, bool healthy) {
  const auto found = members_.find(address);
  if (found == members_.end() || found->second.announced) return false;
  const auto state = healthy ? fb::EngineState::Ready : fb::EngineState::Down;
  return std::exchange(found->second.is.state, state) != state;
}

bool group::on_outcome(const std::string& prefill, const std::string& decode, bool worked, clock_point now) {
  const pair_breaker::pair_name pair{prefill, decode};
  if (worked) {
    trials_.erase(pair);
    return breaker_.worked(pair);
  }
  if (!find(fb::EngineRole::Prefill, prefill) || !find(fb::EngineRole::Decode, decode)) return false;
  trials_.erase(pair);
  breaker_.failed(pair, now);
  return true;
}

std::string_view group::model() const {
  for (const auto& [name, r] : members_)
    if (r.announced) return r.is.model;
  return {};
}

bool group::on_tick(clock_point now, bool bus_is_there) {
  now_ = now;
  // What nobody announces any more need not be kept out.
  for (auto& [address, since] : banned_)
    if (!bus_is_there || since == clock_point{}) since = now;
  std::erase_if(banned_, [&](const auto& one) { return now - one.second > how_.silence; });
  bool changed = breaker_.on_tick(now);
  // Each second it may be asked again, whatever the announcements say.
  for (auto& [name, r] : members_) r.is.load->refuses = false;
  for (auto it = members_.begin(); it != members_.end();) {
    auto& r = it->second;
    const bool silent = r.announced && bus_is_there && now - r.heard > how_.silence;
    const bool gone = (r.leaving && r.is.load->requests == 0) || (silent && !r.listed);
    if (gone) {
      breaker_.forget(r.is.engine.address);
      it = members_.erase(it);
      changed = true;
      continue;
    }
    if (silent) {
      // Its agent has gone; whether it still answers, a probe will tell.
      auto kept = std::move(r);
      kept.announced = false;
      kept.is.state = fb::EngineState::Unknown;
      kept.is.engine.instance = kept.is.engine.address;
      it = members_.erase(it);
      members_.insert_or_assign(kept.is.engine.address, std::move(kept));
      changed = true;
      continue;
    }
    ++it;
  }
  return changed;
}

error group::add(fb::EngineRole role, std::string_view address) {
  const auto at = address_of(address);
  if (!at) return at.failure();
  banned_.erase(*at);
  if (auto* known = find(role, *at)) {
    known->listed = true;
    known->leaving = known->is.draining = false;
    return {};
  }
  if (members_.size() >= how_.max_engines)
    return {errc::overloaded, "the group has " + std::to_string(how_.max_engines) + " engines, its limit"};
  if (members_.count(*at)) return {errc::invalid_request, *at + " is in the group with the other role"};
  auto& r = members_[*at];
  r.listed = true;
  r.is.role = role;
  r.is.engine.instance = *at;
  r.is.engine.address = *at;
  r.is.engine.url = "http://" + *at;
  r.is.engine.bootstrap_port = how_.bootstrap_port;
  return {};
}

error group::remove(fb::EngineRole role, std::string_view address) {
  const auto at = address_of(address);
  if (!at) return at.failure();
  if (!find(role, *at)) return {errc::not_found, *at + " is not in the group"};
  // Else its next announcement would bring it back.
  if (banned_.size() < how_.max_engines) banned_[*at] = now_;
  for (auto& [name, r] : members_) {
    if (r.is.role == role && r.is.engine.address == *at) r.leaving = r.is.draining = true;
  }
  return {};
}

error group::drain(fb::EngineRole role, std::string_view address) {
  const auto at = address_of(address);
  if (!at) return at.failure();
  if (!find(role, *at)) return {errc::not_found, *at + " is not in the group"};
  for (auto& [name, r] : members_) {
    if (r.is.role == role && r.is.engine.address == *at) r.is.draining = true;
  }
  return {};
}

std::shared_ptr<const group_view> group::view() {
  auto view = std::make_shared<group_view>();
  auto earlier = std::exchange(trials_, {});
  for (const auto& [name, r] : members_) {
    view->members.push_back(r.is);
    view->members.back().probed = !r.announced;
    if (how_.protocol != fb::KvProtocol::None) view->members.back().protocol = how_.protocol;
  }
  for (const auto& [pair, e] : breaker_.entries()) {
    pair_state p;
    p.prefill = pair.first;
    p.decode = pair.second;
    p.breaker = e.state;
    p.failures = e.failures;
    if (e.state == fb::Breaker::Open) p.reopens = e.until;
    // A trial outlives the view in which it was taken.
    if (auto trial = earlier[pair]) p.trial = std::move(trial);
    trials_[pair] = p.trial;
    view->pairs.push_back(std::move(p));
  }
  return view;
}

}  // namespace infernex::proxy
