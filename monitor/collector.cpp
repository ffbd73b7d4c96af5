#include "monitor/collector.hpp"

#include <algorithm>
#include <limits>

namespace infernex::monitor {

namespace {

constexpr std::uint64_t card_drop_code = 0x40F84E00;
constexpr std::int32_t dcmi_not_ready = -8012;
constexpr std::int32_t nvml_gpu_is_lost = 15;
constexpr std::size_t max_waiting_events = 4096;

std::uint32_t kept_age(std::uint64_t now_ms, std::uint64_t read_ms) {
  const auto age = now_ms > read_ms ? now_ms - read_ms : 0;
  return static_cast<std::uint32_t>(std::min<std::uint64_t>(age, std::numeric_limits<std::uint32_t>::max()));
}

}  // namespace

collector::collector(collector_settings how) : how_(std::move(how)) {
  sample_.node = how_.node;
  sample_.source = "monitor/" + how_.node;
  sample_.epoch = how_.epoch;
}

void collector::set_boot(std::string boot_id, std::string kernel) {
  inventory_changed_ = inventory_changed_ || boot_id != boot_id_;
  boot_id_ = std::move(boot_id);
  kernel_ = std::move(kernel);
}

collector::kept_device* collector::device_at(std::uint32_t index) {
  const auto at = devices_.find(index);
  if (at != devices_.end()) return &at->second;
  if (devices_.size() >= how_.max_devices) {
    ++refused_;
    return nullptr;
  }
  return &devices_[index];
}

hw_event& collector::add_event(std::uint32_t index, const kept_device& device, fb::HwEventKind kind,
                               fb::HwSource source, const poll_time& now) {
  auto& event = events_.emplace_back();
  event.node = how_.node;
  event.device = index;
  event.vendor = device.vendor;
  event.device_id = device.id;
  if (const auto known = infos_.find(index); known != infos_.end()) event.bus_id = known->second.bus_id;
  event.time = now.wall_ns;
  event.kind = kind;
  event.source = source;
  return event;
}

void collector::keep(std::map<std::uint32_t, kept_reading>& into, const readings& found, int rank,
                     std::uint64_t now_ms) const {
  for (const auto& one : found.all()) {
    const auto key = static_cast<std::uint32_t>(one.metric()) << 16 | one.part();
    const kept_reading fresh{one.value(), now_ms - std::min<std::uint64_t>(one.age_ms(), now_ms), rank};
    const auto [at, added] = into.try_emplace(key, fresh);
    if (added) continue;
    auto& kept = at->second;
    const bool better = rank <= kept.rank && fresh.read_ms >= kept.read_ms;
    if (better || kept_age(now_ms, kept.read_ms) > how_.stale_ms) kept = fresh;
  }
}

void collector::follow_codes(std::uint32_t index, kept_device& device, std::vector<std::uint64_t> present,
                             fb::HwSource kind, const poll_time& now) {
  std::ranges::sort(present);
  present.erase(std::unique(present.begin(), present.end()), present.end());
  static const std::vector<std::uint64_t> none;
  const auto& before = device.codes ? *device.codes : none;
  const auto say = [&](std::uint64_t code, fb::HwAssertion assertion) {
    auto& event = add_event(index, device, fb::HwEventKind::AscendCode, kind, now);
    event.code = code;
    event.assertion = assertion;
  };
  for (const auto code : present)
    if (!std::ranges::binary_search(before, code)) say(code, fb::HwAssertion::Raised);
  for (const auto code : before)
    if (!std::ranges::binary_search(present, code)) say(code, fb::HwAssertion::Cleared);
  device.codes = std::move(present);
  device.codes_ms = now.steady_ms;
}

void collector::follow_failures(std::uint32_t index, kept_device& device, const std::vector<read_failure>& failures,
                                fb::HwSource kind, const poll_time& now) {
  device.failures[kind] = failures;
  const auto has = [&](std::int32_t code) {
    return std::ranges::any_of(device.failures, [code](const auto& of_source) {
      return std::ranges::any_of(of_source.second, [code](const read_failure& one) { return one.code() == code; });
    });
  };
  const bool lost = has(nvml_gpu_is_lost);
  const bool not_ready = has(dcmi_not_ready);
  if (lost || not_ready) {
    if (!device.not_ready_since_ms) device.not_ready_since_ms = now.steady_ms;
  } else {
    device.not_ready_since_ms.reset();
  }
  const bool dropped = lost || (not_ready && now.steady_ms - *device.not_ready_since_ms >= how_.drop_ms);
  if (dropped == device.dropped || (device.dropped && not_ready)) return;
  device.dropped = dropped;
  inventory_changed_ = true;
  const auto assertion = dropped ? fb::HwAssertion::Raised : fb::HwAssertion::Cleared;
  if (device.vendor == fb::HwVendor::Ascend) {
    auto& code = add_event(index, device, fb::HwEventKind::AscendCode, kind, now);
    code.code = card_drop_code;
    code.assertion = assertion;
    code.level = fb::HwLevel::Critical;
  }
  auto& event = add_event(index, device, fb::HwEventKind::CardDrop, kind, now);
  event.assertion = assertion;
  event.level = fb::HwLevel::Critical;
}

void collector::keep_inventory(reading_round& found, fb::HwSource kind) {
  inventory_changed_ = sources_.insert(kind).second || inventory_changed_;
  for (auto& info : found.infos) {
    if (!infos_.contains(info.index) && infos_.size() >= how_.max_devices) {
      ++refused_;
      continue;
    }
    auto& known = infos_[info.index];
    // Sources know different things: text that one lacks does not take away what another knew.
    const auto take = [this](std::string& into, std::string& from) {
      if (from.empty() || into == from) return;
      into = std::move(from);
      inventory_changed_ = true;
    };
    known.index = info.index;
    if (info.vendor != fb::HwVendor::Unknown) known.vendor = info.vendor;
    take(known.model, info.model);
    take(known.serial, info.serial);
    take(known.id, info.id);
    take(known.bus_id, info.bus_id);
    take(known.driver, info.driver);
    take(known.firmware, info.firmware);
    take(known.board, info.board);
    take(known.address, info.address);
    take(known.netmask, info.netmask);
    take(known.fec, info.fec);
    if (info.memory_bytes && known.memory_bytes != info.memory_bytes) {
      known.memory_bytes = info.memory_bytes;
      inventory_changed_ = true;
    }
    if (!info.unsupported.empty()) known.unsupported = std::move(info.unsupported);
  }
  auto& problems = problems_[kind];
  if (problems == found.problems) return;
  problems = std::move(found.problems);
  inventory_changed_ = true;
}

void collector::find_device(hw_event& event) const {
  constexpr std::size_t shortest = 7;  // of `0000:5d:00`, without the domain's zeros, at least `0:5d:00`
  if (event.device || event.bus_id.size() < shortest) return;
  const auto lower = [](char c) { return c >= 'A' && c <= 'Z' ? static_cast<char>(c + 32) : c; };
  for (const auto& [index, info] : infos_) {
    const auto& known = info.bus_id;
    const auto same = [&](char a, char b) { return lower(a) == lower(b); };
    if (known.size() < event.bus_id.size() ||
        !std::equal(event.bus_id.begin(), event.bus_id.end(), known.begin(), same))
      continue;
    if (known.size() > event.bus_id.size() && known[event.bus_id.size()] != '.') continue;
    event.device = index;
    event.device_id = info.id;
    return;
  }
}

void collector::on_round(fb::HwSource kind, int rank, reading_round&& found, const poll_time& now) {
  keep_inventory(found, kind);
  keep(node_values_, found.node, rank, now.steady_ms);
  for (auto& one : found.devices) {
    auto* device = device_at(one.index);
    if (!device) continue;
    if (one.vendor != fb::HwVendor::Unknown) device->vendor = one.vendor;
    if (!one.id.empty()) device->id = one.id;
    keep(device->values, one.values, rank, now.steady_ms);
    if (one.codes) follow_codes(one.index, *device, *std::move(one.codes), kind, now);
    follow_failures(one.index, *device, one.failures, kind, now);
  }
  for (auto& event : found.events) {
    if (events_.size() >= max_waiting_events) {
      ++refused_;
      continue;
    }
    event.node = how_.node;
    if (event.time == 0) event.time = now.wall_ns;
    if (event.source == fb::HwSource::Unknown) event.source = kind;
    find_device(event);
    events_.push_back(std::move(event));
  }
}

void collector::on_busy(std::uint32_t index, fb::HwSource kind, std::uint32_t busy_ms, std::uint32_t deadline_ms,
                        const poll_time& now) {
  auto* device = device_at(index);
  if (!device) return;
  const bool hung = busy_ms >= deadline_ms;
  device->busy_ms = hung ? busy_ms : 0;
  if (hung == device->hung) return;
  device->hung = hung;
  auto& event = add_event(index, *device, fb::HwEventKind::DriverHang, kind, now);
  if (hung) event.code = busy_ms;
  event.assertion = hung ? fb::HwAssertion::Raised : fb::HwAssertion::Cleared;
}

void collector::tell(std::map<std::uint32_t, kept_reading>& from, readings& into, std::uint64_t now_ms) const {
  into.clear();
  for (auto at = from.begin(); at != from.end();) {
    const auto age = kept_age(now_ms, at->second.read_ms);
    if (age > how_.forget_ms) {
      at = from.erase(at);
      continue;
    }
    into.set(static_cast<metric>(at->first >> 16), at->second.value, static_cast<std::uint16_t>(at->first & 0xFFFF),
             age);
    ++at;
  }
}

std::optional<hw_inventory> collector::inventory_if_due(const poll_time& now) {
  if (!inventory_changed_ && now.steady_ms - inventory_told_ms_ < how_.inventory_ms) return std::nullopt;
  inventory_changed_ = false;
  inventory_told_ms_ = now.steady_ms;
  hw_inventory all;
  all.node = how_.node;
  all.time = now.wall_ns;
  all.boot_id = boot_id_;
  all.kernel = kernel_;
  if (how_.expected_devices) all.expected_devices = *how_.expected_devices;
  for (const auto& [index, info] : infos_) {
    auto& one = *all.devices.emplace_back(std::make_unique<device_info>(info));
    const auto device = devices_.find(index);
    one.present = device == devices_.end() || !device->second.dropped;
  }
  all.sources.assign(sources_.begin(), sources_.end());
  for (const auto& [kind, lines] : problems_) all.problems.insert(all.problems.end(), lines.begin(), lines.end());
  return all;
}

node_report collector::report(const poll_time& now) {
  sample_.time = now.wall_ns;
  tell(node_values_, sample_.values, now.steady_ms);
  sample_.devices.resize(devices_.size());
  std::size_t count = 0;
  for (auto& [index, device] : devices_) {
    auto& into = sample_.devices[count++];
    into.index = index;
    into.vendor = device.vendor;
    into.id = device.id;
    tell(device.values, into.values, now.steady_ms);
    if (device.busy_ms != 0) into.values.set(metric::DriverHangMs, device.busy_ms);
    into.codes = device.codes;
    into.codes_age_ms = device.codes ? kept_age(now.steady_ms, device.codes_ms) : 0;
    into.failures.clear();
    for (const auto& [kind, failures] : device.failures)
      into.failures.insert(into.failures.end(), failures.begin(), failures.end());
  }
  node_report out;
  out.node = how_.node;
  out.sample = &sample_;
  out.events = std::exchange(events_, {});
  out.inventory = inventory_if_due(now);
  return out;
}

}  // namespace infernex::monitor
