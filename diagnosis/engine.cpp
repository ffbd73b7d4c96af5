#include "diagnosis/engine.hpp"

#include <algorithm>

#include "diagnosis/engine_parts.hpp"

namespace infernex::diagnosis {

namespace {

/// Of a node's own pace, so that silence is not seen where samples are rare.
constexpr millis periods_of_silence = 3;

}  // namespace

engine::engine(std::shared_ptr<const knowledge> base, engine_limits limits) : base_(std::move(base)), limits_(limits) {
  make_plans();
}
engine::engine(engine&&) noexcept = default;
engine::~engine() = default;

void engine::make_plans() {
  plans_.clear();
  for (std::size_t v = 0; v < vendors; ++v)
    plans_.push_back(std::make_unique<plan>(base_, static_cast<fb::HwVendor>(v), scope::device));
  plans_.push_back(std::make_unique<plan>(base_, fb::HwVendor::Unknown, scope::node));
}

const plan& engine::plan_of(fb::HwVendor vendor) const {
  return *plans_[std::min(static_cast<std::size_t>(vendor), vendors - 1)];
}

engine::node* engine::find_or_add(const std::string& name, millis now) {
  const auto found = nodes_.find(name);
  if (found != nodes_.end()) return found->second.get();
  if (name.empty() || nodes_.size() >= limits_.max_nodes) {
    ++counts_.refused;
    return nullptr;
  }
  auto& fresh = nodes_[name];
  fresh = std::make_unique<node>(name, *plans_.back(), *base_);
  fresh->last_seen = now;
  return fresh.get();
}

engine::device* engine::find_or_add(node& of, std::uint32_t index, fb::HwVendor vendor) {
  if (index < of.devices.size() && of.devices[index]) {
    auto& known = *of.devices[index];
    if (known.vendor == fb::HwVendor::Unknown && vendor != known.vendor) {
      known.vendor = vendor;  // an event came before the first sample
      known.body = patient(plan_of(vendor), *base_);
    }
    return &known;
  }
  if (index >= limits_.max_devices_of_node || devices_ >= limits_.max_devices) {
    ++counts_.refused;
    return nullptr;
  }
  if (of.devices.size() <= index) of.devices.resize(index + 1);
  of.devices[index] = std::make_unique<device>(index, vendor, plan_of(vendor), *base_);
  ++devices_;
  return of.devices[index].get();
}

void engine::on_sample(const monitor::node_sample& sample, millis now) {
  auto* of = find_or_add(sample.node, now);
  if (of == nullptr) return;
  ++counts_.samples;
  counts_.device_samples += sample.devices.size();
  const auto gap = now - of->last_seen;
  if (gap > 0 && gap < 60'000) of->period += (gap - of->period) / 8;
  of->last_seen = now;
  of->offset = static_cast<millis>(sample.time / 1'000'000) - now;
  of->body.on_silence(0, 0, true, now);
  of->body.on_readings(sample.values.all(), {}, now);
  of->body.advance(now);
  if (of->body.has_changes()) publish(*of, nullptr, of->body);
  for (const auto& one : sample.devices) on_device(*of, one, now);
  if (now < of->window_ends) return;
  if (of->window_ends > 0) end_window(*of, now);
  of->window_ends = now + thermal_watch::window;
}

void engine::on_device(node& of, const monitor::device_sample& sample, millis now) {
  auto* who = find_or_add(of, sample.index, sample.vendor);
  if (who == nullptr) return;
  if (!sample.id.empty() && sample.id != who->id) {
    if (!who->id.empty()) {  // another device is in its place
      who->body.close_all(now);
      who->heat = {};
    }
    who->id = sample.id;
  }
  who->last_seen = now;
  auto& range = of.ranges[std::min(static_cast<std::size_t>(who->vendor), vendors - 1)];
  const auto watts = sample.values.get(metric::Power);
  auto load = sample.values.get(metric::Utilization);
  if (!load) load = sample.values.get(metric::AicoreUtilization);
  who->heat.add(sample.values.get(metric::Temperature), watts, load, now);
  if (watts) {
    const double smooth = who->heat.filtered_watts();
    if (range.least_power == 0 || smooth < range.least_power) range.least_power = smooth;
    range.most_power = std::max(range.most_power, smooth);
  }
  range.most_memory = std::max(range.most_memory, sample.values.get(metric::MemoryTotal).value_or(0));
  auto& body = who->body;
  body.on_silence(0, 0, true, now);
  body.on_readings(sample.values.all(), range, now);
  body.on_failures(sample.failures, now);
  if (sample.codes) body.on_codes(*sample.codes, now - static_cast<millis>(sample.codes_age_ms), now);
  body.advance(now);
  counts_.refused += body.take_shed();
  if (who->curves.is_due(now)) who->curves.add(body, now);
  if (body.has_changes()) publish(of, who, body);
}

void engine::end_window(node& of, millis now) {
  std::vector<thermal_watch*> peers;
  for (std::size_t v = 0; v < vendors; ++v) {
    peers.clear();
    for (const auto& one : of.devices)
      if (one && static_cast<std::size_t>(one->vendor) == v) peers.push_back(&one->heat);
    if (!peers.empty()) thermal_watch::end_window(peers);
  }
  using name = clause::anomaly_name;
  for (const auto& one : of.devices) {
    if (!one) continue;
    one->body.on_anomaly(name::warmer_than_peers, one->heat.warmer(), now);
    one->body.on_anomaly(name::temperature_drift, one->heat.drifts(), now);
    one->body.on_anomaly(name::power_unlike_peers, one->heat.odd_power(), now);
    if (one->body.has_changes()) publish(of, one.get(), one->body);
  }
}

void engine::on_event(const fb::HwEventT& event, millis now) {
  auto* of = find_or_add(event.node, now);
  if (of == nullptr) return;
  ++counts_.events;
  of->body.on_event(event, event.device.value_or(UINT32_MAX), now);
  of->body.advance(now);
  if (of->body.has_changes()) publish(*of, nullptr, of->body);
  const auto tell = [&](device& who) {
    who.body.on_event(event, event.device.value_or(UINT32_MAX), now);
    who.body.advance(now);
    if (who.body.has_changes()) publish(*of, &who, who.body);
  };
  using kind = fb::HwEventKind;
  if (event.device) {
    if (auto* who = find_or_add(*of, *event.device, event.vendor)) tell(*who);
  } else if (event.kind == kind::NodeBoot || event.kind == kind::DriverReload) {
    for (const auto& one : of->devices)
      if (one) tell(*one);
  }
}

void engine::on_inventory(const fb::HwInventoryT& inventory, millis now) {
  auto* of = find_or_add(inventory.node, now);
  if (of == nullptr) return;
  for (const auto& said : inventory.devices) {
    if (!said) continue;
    auto* who = find_or_add(*of, said->index, said->vendor);
    if (who == nullptr) continue;
    who->bus_id = said->bus_id;
    who->model = said->model;
    who->driver = said->driver;
    who->firmware = said->firmware;
    if (who->last_seen == 0) who->last_seen = now;
    who->body.on_presence(said->present, now);
    who->body.advance(now);
    if (who->body.has_changes()) publish(*of, who, who->body);
  }
}

void engine::tick(node& of, bool judged, millis now) {
  const auto slack = periods_of_silence * of.period;
  of.body.on_silence(now - of.last_seen, slack, judged, now);
  of.body.advance(now);
  if (of.body.has_changes()) publish(of, nullptr, of.body);
  const bool reports = now - of.last_seen < slack;
  for (const auto& one : of.devices) {
    if (!one) continue;
    // While all of the node is silent, that says it.
    if (reports) one->body.on_silence(now - one->last_seen, slack, true, now);
    if (!reports || now - one->last_seen > 2 * of.period) one->body.advance(now);
    if (one->body.has_changes()) publish(of, one.get(), one->body);
  }
}

void engine::on_tick(millis now, bool heard) {
  std::size_t reporting = 0;
  for (const auto& [name, one] : nodes_) reporting += now - one->last_seen < periods_of_silence * one->period;
  const bool judged = heard && (reporting > 0 || nodes_.size() == 1);
  for (auto at = nodes_.begin(); at != nodes_.end();) {
    auto& of = *at->second;
    tick(of, judged, now);
    if (now - of.last_seen < limits_.forget) {
      ++at;
      continue;
    }
    of.body.close_all(now);
    publish(of, nullptr, of.body);
    for (const auto& one : of.devices) {
      if (!one) continue;
      one->body.close_all(now);
      publish(of, one.get(), one->body);
      --devices_;
    }
    at = nodes_.erase(at);
  }
}

void engine::reload(std::shared_ptr<const knowledge> base, millis now) {
  for (const auto& [name, of] : nodes_) {
    of->body.close_all(now);
    publish(*of, nullptr, of->body);
    for (const auto& one : of->devices) {
      if (!one) continue;
      one->body.close_all(now);
      publish(*of, one.get(), one->body);
    }
  }
  const auto old_base = std::exchange(base_, std::move(base));
  const auto old_plans = std::exchange(plans_, {});
  make_plans();
  for (const auto& [name, of] : nodes_) {
    of->body = patient(*plans_.back(), *base_);
    for (const auto& one : of->devices)
      if (one) one->body = patient(plan_of(one->vendor), *base_);
  }
}

std::vector<verdict_ref> engine::take_changes() { return std::exchange(changes_, {}); }

std::size_t engine::bytes() const {
  std::size_t sum = 0;
  for (const auto& [name, of] : nodes_) {
    sum += sizeof(node) + of->body.bytes() + of->devices.capacity() * sizeof(void*);
    for (const auto& one : of->devices)
      if (one) sum += sizeof(device) + one->body.bytes() - sizeof(patient);
  }
  return sum;
}

}  // namespace infernex::diagnosis
