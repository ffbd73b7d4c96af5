#include "monitor/sim_node.hpp"

#include <algorithm>
#include <cmath>
#include <cstdio>

namespace infernex::monitor {

const sim_model& sim_model_of(const sim_settings& settings, std::uint32_t node) {
  if (settings.model == "mixed") return sim_models()[node % sim_models().size()];
  const auto* model = find_sim_model(settings.model);
  return model ? *model : sim_models()[0];
}

std::string find_sim_fault_mistake(const sim_settings& settings, const sim_fault& fault) {
  const auto last = [](std::uint32_t count) { return std::to_string(count - 1); };
  if (fault.node >= settings.nodes) return "nodes are 0 to " + last(settings.nodes);
  if (fault.device >= settings.devices) return "devices are 0 to " + last(settings.devices);
  const auto& model = sim_model_of(settings, fault.node);
  if (!can_happen(fault.kind, model.vendor))
    return "\"" + std::string(info(fault.kind).name) + "\" does not happen to a " + std::string(model.name);
  if (fault.kind == fault_kind::code && fault.number == 0) return "which code?";
  return {};
}

sim_node::sim_node(const sim_settings& settings, std::uint32_t number, const std::vector<sim_fault>& faults)
    : settings_(settings),
      random_(mix_seed(settings.seed, number)),
      journal_(settings.node_prefix + std::to_string(number)),
      model_(&sim_model_of(settings, number)) {
  sample_.node = settings.node_prefix + std::to_string(number);
  sample_.source = "monitor/" + sample_.node;
  sample_.epoch = settings.start_ns;
  const double seconds = settings.period_ms / 1000.0;
  share_ = 1 - std::exp(-seconds / model_->time_constant);
  room_offset_ = random_.noise();
  for (const auto& fault : faults) truths_.push_back({fault, {}, {}});
  std::ranges::stable_sort(truths_, {}, [](const sim_truth& one) { return one.fault.at_ms; });
  make_devices(number);
}

void sim_node::make_devices(std::uint32_t number) {
  devices_.resize(settings_.devices);
  incidents_.resize(settings_.devices);
  // Models are served by 1, 2, 4 or 8 devices.
  const std::uint32_t group_size = 1U << random_.below(4);
  for (std::uint32_t i = 0; i < settings_.devices; ++i) {
    auto& device = devices_[i];
    device.model = model_;
    device.index = i;
    char address[24];
    std::snprintf(address, sizeof address, "0000:%02X:00.0", (0x19U + 0x12U * i + number % 3) & 0xFFU);
    device.bus_id = address;
    device.replace(random_);
    device.watts = model_->idle_watts;
    device.celsius = 24 + model_->base_celsius + model_->resistance * model_->idle_watts;
    device.memory_celsius = 24 + model_->memory_base_celsius + model_->memory_resistance * model_->idle_watts;
    if (i % group_size == 0) groups_.emplace_back(settings_.period_ms, random_);
    group_of_.push_back(static_cast<std::uint32_t>(groups_.size() - 1));
  }
}

void sim_node::inject(sim_fault fault) {
  fault.at_ms = now_ms_;
  const auto at = truths_.begin() + static_cast<std::ptrdiff_t>(next_truth_);
  truths_.insert(at, {fault, {}, {}});
}

/// The room is warmer in the afternoon, and wanders.
void sim_node::step_room() {
  constexpr double pi = 3.14159265358979;
  const double seconds = settings_.period_ms / 1000.0;
  const double hour = std::fmod(static_cast<double>(time_ns() / 1'000'000'000 % 86'400) / 3600.0, 24.0);
  const double follow = seconds / 900;
  room_wander_ += -room_wander_ * follow + 0.7 * std::sqrt(2 * follow) * random_.noise();
  room_ = 23 + std::cos((hour - 16) / 12 * pi) + room_offset_ + room_wander_;
  for (auto& group : groups_) group.step(now_ms_, hour, random_);
}

void sim_node::step_fault(active_fault& one, bool over) {
  const auto touch = [&](sim_device& device) {
    sim_scene scene{device,  truths_[one.truth],           one.progress,      random_, journal_,
                    now_ms_, settings_.period_ms / 1000.0, inventory_changed_};
    if (over) return end_fault(scene);
    if (!one.progress.begun) begin_fault(scene);
    one.progress.begun = true;
    continue_fault(scene);
  };
  const auto& fault = truths_[one.truth].fault;
  auto& device = devices_[fault.device];
  touch(device);
  if (over) return;
  if (info(fault.kind).node_wide) silent_ = true;
  if (device.influence.mismatched)  // the driver is the node's
    for (auto& other : devices_) other.influence.mismatched = true;
}

void sim_node::step_faults() {
  for (; next_truth_ < truths_.size() && truths_[next_truth_].fault.at_ms <= now_ms_; ++next_truth_)
    active_.push_back({next_truth_, {}});
  std::erase_if(active_, [this](active_fault& one) {
    const auto& fault = truths_[one.truth].fault;
    const bool over = now_ms_ >= fault.at_ms + fault.for_ms;
    step_fault(one, over);
    return over;
  });
}

/// What one device of a group is made to work on, all of it work on.
void sim_node::share_load() {
  if (active_.empty()) return;
  std::vector<double> least(groups_.size(), 0.0);
  for (const auto& device : devices_) {
    auto& of_group = least[group_of_[device.index]];
    of_group = std::max(of_group, device.influence.least_load);
  }
  for (auto& device : devices_) device.influence.least_load = least[group_of_[device.index]];
}

void sim_node::step() {
  now_ms_ = steps_++ * settings_.period_ms;
  journal_.begin_step(time_ns());
  inventory_changed_ = steps_ == 1;
  silent_ = false;
  step_room();
  for (auto& device : devices_) {
    device.influence = {};
    device.processes = groups_[group_of_[device.index]].processes();
  }
  step_faults();
  share_load();
  const auto is_faulty = [this](std::uint32_t index) {
    return std::ranges::any_of(active_, [&](const auto& one) { return truths_[one.truth].fault.device == index; });
  };
  const auto half = settings_.devices / 2;
  const double seconds = settings_.period_ms / 1000.0;
  for (auto& device : devices_) {
    const auto i = device.index;
    if (settings_.incidents && !(!active_.empty() && is_faulty(i)))
      incidents_[i].step(device, now_ms_, random_, journal_);
    // The second row breathes what the first has warmed.
    const double upstream = half > 0 && i >= half ? model_->coupling * devices_[i - half].watts : 0;
    const auto& group = groups_[group_of_[i]];
    device.step(room_ + upstream, group.processes() == 0 ? 0 : group.load(), seconds, share_, random_);
  }
  read();
}

void sim_node::read() {
  sample_.time = time_ns();
  ++sample_.sequence;
  const auto slow_age = static_cast<std::uint32_t>(now_ms_ % 60'000);
  sample_.devices.resize(devices_.size());
  std::size_t count = 0;
  std::size_t found = 0;
  for (const auto& device : devices_) {
    if (device.condition.present) ++found;
    if (device.influence.silent) continue;
    auto& into = sample_.devices[count];
    if (device.influence.hang_ms != 0) {
      // Its readings of before, which may stand elsewhere in the list if others were silent then.
      if (into.index != device.index) {
        into.values.clear();
        into.index = device.index;
        into.id = device.id;
      }
      into.values.grow_older(settings_.period_ms);
      into.codes_age_ms += settings_.period_ms;
    } else {
      into.codes_age_ms = 0;
    }
    read_device(device, slow_age, random_, into);
    ++count;
  }
  sample_.devices.resize(count);
  read_node(found);
}

}  // namespace infernex::monitor
