#include "actors/router/fleet.hpp"

#include <algorithm>

#include "actors/router/announced.hpp"
#include "actors/router/isolation.hpp"
#include "actors/router/life_totals.hpp"
#include "messages/view.hpp"

namespace infernex::router {

namespace {

/// Measurements so old are taken off the board (it stops showing them long before).
constexpr auto withdraw_loads_after = std::chrono::minutes(1);
/// What nobody has taken yet.
constexpr std::size_t max_health_events = 1'024;

std::string seconds(std::chrono::milliseconds time) {
  const auto ms = time.count();
  return ms % 1000 == 0 ? std::to_string(ms / 1000) + " s" : std::to_string(ms) + " ms";
}

/// A position in a source's messages on one subject.
struct position {
  std::uint64_t epoch = 0;
  std::uint64_t sequence = 0;
  /// False: the message is old or has been seen.
  bool advance(const fb::Origin& to) {
    if (to.epoch() < epoch || (to.epoch() == epoch && to.sequence() <= sequence)) return false;
    epoch = to.epoch();
    sequence = to.sequence();
    return true;
  }
};

struct engine {
  endpoint as_endpoint;
  position announced;
  position loads;
  clock_point last_heard;
  std::optional<clock_point> measured_at;
  bool listed = false;  // in the topology
  /// Not as the topology has it.
  bool adapters_changed = false;
};

}  // namespace

struct fleet::impl {
  explicit impl(fleet_settings wanted)
      : settings(wanted),
        board(wanted.max_engines),
        totals(wanted.max_gateways, wanted.max_engines),
        verdicts(wanted.verdict_silence) {
    snapshot.publish(std::make_shared<const topology>());
  }

  fleet_settings settings;
  load_board board;
  life_totals totals;
  verdict_board verdicts;
  std::vector<health_event> health_events;
  std::map<std::string, std::map<std::string, engine, std::less<>>, std::less<>> models;
  topology latest;
  published<topology> snapshot;
  bool bus_connected = true;
  std::uint64_t refused = 0;

  engine* find(std::string_view model, std::string_view instance) {
    const auto m = models.find(model);
    if (m == models.end()) return nullptr;
    const auto it = m->second.find(instance);
    return it == m->second.end() ? nullptr : &it->second;
  }

  engine* obtain(std::string_view model, std::string_view instance) {
    if (auto* known = find(model, instance)) return known;
    const auto usable = [](std::string_view name) { return !name.empty() && name.size() <= max_name_bytes; };
    const auto slot = usable(model) && usable(instance) ? board.acquire() : std::nullopt;
    if (!slot) {
      ++refused;
      return nullptr;
    }
    auto m = models.try_emplace(std::string(model)).first;
    auto& fresh = m->second.try_emplace(std::string(instance)).first->second;
    fresh.as_endpoint.instance = instance;
    fresh.as_endpoint.slot = *slot;
    board.set_remote(*slot, totals.sum({m->first, fresh.as_endpoint.instance}));
    return &fresh;
  }

  /// What verdicts mean for a model's engines. True: for some of them something else than before.
  bool settle(const std::string& model, std::map<std::string, engine, std::less<>>& engines) {
    std::vector<asked_engine> asked;
    std::vector<engine_health> before;
    for (auto& [instance, of] : engines) {
      asked.push_back({&of.as_endpoint, verdicts.asked_of(of.as_endpoint.node, of.as_endpoint.devices)});
      before.push_back(of.as_endpoint.health);
    }
    settle_health(asked, settings);
    bool changed = false;
    for (std::size_t i = 0; i < asked.size(); ++i) {
      const auto& now = *asked[i].engine;
      if (now.health == before[i]) continue;
      changed = true;
      if (health_events.size() == max_health_events) health_events.erase(health_events.begin());
      health_events.push_back({model, now.instance, now.health});
    }
    return changed;
  }
  void settle_all() {
    bool changed = false;
    for (auto& [model, engines] : models)
      if (settle(model, engines)) {
        rebuild(model);
        changed = true;
      }
    if (changed) publish();
  }

  /// Into the next topology; publish() makes it seen.
  void rebuild(const std::string& model) {
    const auto m = models.find(model);
    if (m == models.end() || m->second.empty()) {
      latest.models.erase(model);
      return;
    }
    model_endpoints next{model, {}};
    next.endpoints.reserve(m->second.size());
    for (const auto& [instance, of] : m->second) next.endpoints.push_back(of.as_endpoint);
    latest.models.insert_or_assign(model, std::move(next));
  }
  void publish() {
    ++latest.version;
    snapshot.publish(std::make_shared<const topology>(latest));
  }

  void show_totals(const std::vector<life_totals::engine_name>& changed) {
    for (const auto& name : changed)
      if (const auto* of = find(name.first, name.second)) board.set_remote(of->as_endpoint.slot, totals.sum(name));
  }
};

fleet::fleet(fleet_settings settings) : impl_(std::make_unique<impl>(settings)) {}
fleet::~fleet() = default;
const published<topology>& fleet::topologies() const { return impl_->snapshot; }
load_board& fleet::board() { return impl_->board; }
std::uint64_t fleet::refused() const { return impl_->refused; }

std::vector<fleet_event> fleet::on_announce(const fb::EngineAnnounce& message, clock_point now) {
  const std::string model(text(message.model()));
  auto* of = message.origin() ? impl_->obtain(model, text(message.instance())) : nullptr;
  if (!of || !of->announced.advance(*message.origin())) return {};
  of->last_heard = now;
  auto next = of->as_endpoint;
  next.url = text(message.url());
  next.role = message.role();
  next.state = message.state();
  next.reason = text(message.reason());
  next.group = text(message.pd_group());
  next.node = text(message.node());
  next.block_size = optional_of(message.block_size());
  next.total_blocks = optional_of(message.total_blocks());
  next.engine_block_size = optional_of(message.engine_block_size());
  next.max_model_len = optional_of(message.max_model_len());
  next.engine_epoch = optional_of(message.engine_epoch());
  next.kv_health = message.kv_health();
  next.data_parallel_rank = optional_of(message.data_parallel_rank());
  next.adapters.clear();
  if (const auto* adapters = message.adapters())
    for (const auto* adapter : *adapters) next.adapters.emplace_back(text(adapter));
  next.labels = labels_of(message);
  next.devices = devices_of(message);
  next.kv_transfer = kv_transfer_of(message);
  // Another process: what its predecessor had loaded says nothing of it.
  if (next.engine_epoch != of->as_endpoint.engine_epoch) next.adapters_in_use.reset();
  if (std::exchange(of->listed, true) && next == of->as_endpoint) return {};
  std::vector<fleet_event> events;
  if (next.state != of->as_endpoint.state)
    events.push_back({model, next.instance, of->as_endpoint.state, next.state, next.reason});
  of->as_endpoint = std::move(next);
  impl_->settle(model, impl_->models.find(model)->second);
  impl_->rebuild(model);
  impl_->publish();
  return events;
}

void fleet::on_load(const fb::EngineLoad& message, clock_point now) {
  auto* of = message.origin() ? impl_->find(text(message.model()), text(message.instance())) : nullptr;
  if (!of || message.origin()->epoch() < of->announced.epoch || !of->loads.advance(*message.origin())) return;
  of->last_heard = now;
  of->measured_at = now;
  impl_->board.report(of->as_endpoint.slot, optional_of(message.running()), optional_of(message.waiting()),
                      optional_of(message.kv_usage()), now);
  // Under load they change with every batch: the next tick makes a topology of all that changed.
  auto use = adapters_in(message);
  if (use == of->as_endpoint.adapters_in_use) return;
  of->as_endpoint.adapters_in_use = std::move(use);
  of->adapters_changed = true;
}

void fleet::on_life(const fb::RequestLife& message, clock_point now, std::string_view own_source) {
  if (!own_source.empty() && message.origin() && text(message.origin()->id()) == own_source) return;
  bool accepted = false;
  impl_->show_totals(impl_->totals.replace(message, now, accepted));
  if (!accepted) ++impl_->refused;
}

std::vector<health_event> fleet::take_health_events() { return std::exchange(impl_->health_events, {}); }

fleet::isolation_count fleet::isolations() const {
  isolation_count count;
  for (const auto& [model, engines] : impl_->models)
    for (const auto& [instance, of] : engines) {
      const auto& health = of.as_endpoint.health;
      if (health.isolated())
        ++count.isolated;
      else if (health.asked == fb::VerdictAction::Isolate)
        ++count.withheld;
    }
  return count;
}

void fleet::on_verdict(const fb::Verdict& message, clock_point now) {
  if (impl_->verdicts.on_verdict(message, now)) impl_->settle_all();
}

std::vector<fleet_event> fleet::on_tick(clock_point now) {
  if (!impl_->bus_connected) return {};
  if (impl_->verdicts.on_tick(now)) impl_->settle_all();
  std::vector<fleet_event> events;
  bool changed = false;
  for (auto m = impl_->models.begin(); m != impl_->models.end();) {
    auto& [model, engines] = *m;
    bool model_changed = false;
    for (auto e = engines.begin(); e != engines.end();) {
      auto& [instance, of] = *e;
      const auto silent = now - of.last_heard;
      auto& shown = of.as_endpoint;
      if (silent >= impl_->settings.forget) {
        events.push_back({model, instance, shown.state, fb::EngineState::Unknown,
                          "forgotten: its agent has been silent for " + seconds(impl_->settings.forget)});
        impl_->board.release(shown.slot);
        e = engines.erase(e);
        model_changed = true;
        continue;
      }
      if (silent >= impl_->settings.silence && shown.state != fb::EngineState::Down) {
        const auto before = std::exchange(shown.state, fb::EngineState::Down);
        shown.reason = "its agent has been silent for " + seconds(impl_->settings.silence);
        events.push_back({model, instance, before, shown.state, shown.reason});
        model_changed = true;
      }
      if (of.measured_at && now - *of.measured_at >= withdraw_loads_after) {
        impl_->board.report(shown.slot, std::nullopt, std::nullopt, std::nullopt, now);
        of.measured_at.reset();
        of.adapters_changed = of.adapters_changed || shown.adapters_in_use;
        shown.adapters_in_use.reset();
      }
      model_changed = std::exchange(of.adapters_changed, false) || model_changed;
      ++e;
    }
    const auto name = model;
    if (model_changed) impl_->settle(name, engines);
    m = engines.empty() ? impl_->models.erase(m) : std::next(m);
    if (model_changed) impl_->rebuild(name);
    changed = changed || model_changed;
  }
  if (changed) impl_->publish();
  impl_->show_totals(impl_->totals.expire(now, impl_->settings.life_silence));
  return events;
}

void fleet::on_bus(bool connected, clock_point now) {
  const bool back = connected && !impl_->bus_connected;
  impl_->bus_connected = connected;
  if (!back) return;
  for (auto& [model, engines] : impl_->models)
    for (auto& [instance, of] : engines) of.last_heard = now;
  impl_->totals.touch(now);
  impl_->verdicts.touch(now);
}

}  // namespace infernex::router
