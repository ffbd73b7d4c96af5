#include "monitor/device_sample.hpp"

#include <algorithm>
#include <limits>

namespace infernex::monitor {

namespace {

std::uint32_t order_of(metric id, std::uint16_t part) {
  return static_cast<std::uint32_t>(id) << 16 | static_cast<std::uint32_t>(part);
}
std::uint32_t order_of(const reading& one) { return order_of(one.metric(), one.part()); }

bool comes_before(const reading& one, std::uint32_t order) { return order_of(one) < order; }

}  // namespace

bool readings::set(metric id, double value, std::uint16_t part, std::uint32_t age_ms) {
  if (!is_valid(id, value)) return false;
  const reading added(id, part, age_ms, value);
  const auto order = order_of(added);
  if (all_.empty() || order_of(all_.back()) < order) {
    all_.push_back(added);
    return true;
  }
  const auto at = std::lower_bound(all_.begin(), all_.end(), order, comes_before);
  if (order_of(*at) == order)
    *at = added;
  else
    all_.insert(at, added);
  return true;
}

void readings::erase(metric id, std::uint16_t part) {
  const auto order = order_of(id, part);
  const auto at = std::lower_bound(all_.begin(), all_.end(), order, comes_before);
  if (at != all_.end() && order_of(*at) == order) all_.erase(at);
}

void readings::assign(std::span<const reading> from) {
  all_.clear();
  all_.reserve(from.size());
  bool in_order = true;
  for (const auto& one : from) {
    if (!is_valid(one.metric(), one.value())) continue;
    in_order = in_order && (all_.empty() || order_of(all_.back()) < order_of(one));
    all_.push_back(one);
  }
  if (in_order) return;
  std::stable_sort(all_.begin(), all_.end(),
                   [](const reading& a, const reading& b) { return order_of(a) < order_of(b); });
  const auto same = [](const reading& a, const reading& b) { return order_of(a) == order_of(b); };
  all_.erase(std::unique(all_.begin(), all_.end(), same), all_.end());
}

void readings::grow_older(std::uint32_t by_ms) {
  constexpr auto most = std::numeric_limits<std::uint32_t>::max();
  for (auto& one : all_) {
    const auto age = one.age_ms() > most - by_ms ? most : one.age_ms() + by_ms;
    one = reading(one.metric(), one.part(), age, one.value());
  }
}

const reading* readings::find(metric id, std::uint16_t part) const {
  const auto order = order_of(id, part);
  const auto at = std::lower_bound(all_.begin(), all_.end(), order, comes_before);
  return at != all_.end() && order_of(*at) == order ? &*at : nullptr;
}

std::optional<double> readings::get(metric id, std::uint16_t part) const {
  const auto* found = find(id, part);
  return found ? std::optional(found->value()) : std::nullopt;
}

std::span<const reading> readings::parts(metric id) const {
  const auto first = std::lower_bound(all_.begin(), all_.end(), order_of(id, 0), comes_before);
  auto last = first;
  while (last != all_.end() && last->metric() == id) ++last;
  return {first, last};
}

const device_sample* node_sample::find(std::uint32_t index) const {
  const auto at = std::ranges::find(devices, index, &device_sample::index);
  return at == devices.end() ? nullptr : &*at;
}

namespace {

using builder = flatbuffers::FlatBufferBuilder;

flatbuffers::Offset<fb::HwDevice> pack_device(builder& to, const device_sample& device) {
  const auto id = device.id.empty() ? 0 : to.CreateString(device.id);
  const auto all = device.values.all();
  const auto values = to.CreateVectorOfStructs(all.data(), all.size());
  flatbuffers::Offset<flatbuffers::Vector<std::uint64_t>> codes;
  if (device.codes) codes = to.CreateVector(*device.codes);
  flatbuffers::Offset<flatbuffers::Vector<const read_failure*>> failures;
  if (!device.failures.empty()) failures = to.CreateVectorOfStructs(device.failures);
  return fb::CreateHwDevice(to, device.index, device.vendor, id, values, codes, device.codes_age_ms, failures);
}

/// Whether every reading was valid is told by the sizes.
std::size_t unpack_values(const flatbuffers::Vector<const fb::HwValue*>* from, readings& into) {
  into.clear();
  if (!from || from->size() == 0) return 0;
  into.assign({from->Get(0), from->size()});
  return from->size() - into.size();
}

std::size_t unpack_device(const fb::HwDevice& from, device_sample& into) {
  into.index = from.index();
  into.vendor = from.vendor();
  into.id = text(from.id());
  into.codes_age_ms = from.codes_age_ms();
  if (const auto* codes = from.codes()) {
    if (!into.codes) into.codes.emplace();
    into.codes->assign(codes->begin(), codes->end());
  } else {
    into.codes.reset();
  }
  into.failures.clear();
  if (const auto* failures = from.failures())
    for (const auto* one : *failures) into.failures.push_back(*one);
  return unpack_values(from.values(), into.values);
}

}  // namespace

flatbuffers::DetachedBuffer pack(const node_sample& sample) {
  builder to(512 + 1024 * sample.devices.size());
  std::vector<flatbuffers::Offset<fb::HwDevice>> devices;
  devices.reserve(sample.devices.size());
  for (const auto& device : sample.devices) devices.push_back(pack_device(to, device));
  const auto list = to.CreateVector(devices);
  const auto all = sample.values.all();
  const auto values = to.CreateVectorOfStructs(all.data(), all.size());
  const auto node = to.CreateString(sample.node);
  const auto origin = fb::CreateOrigin(to, to.CreateString(sample.source), sample.epoch, sample.sequence);
  to.Finish(fb::CreateHwSample(to, origin, node, sample.time, values, list), fb::HwSampleIdentifier());
  return to.Release();
}

std::size_t unpack(const fb::HwSample& message, node_sample& into) {
  into.node = text(message.node());
  const auto* origin = message.origin();
  into.source = origin ? text(origin->id()) : std::string_view{};
  into.epoch = origin ? origin->epoch() : 0;
  into.sequence = origin ? origin->sequence() : 0;
  into.time = message.time();
  auto left_out = unpack_values(message.values(), into.values);
  std::size_t count = 0;
  if (const auto* devices = message.devices()) {
    if (into.devices.size() < devices->size()) into.devices.resize(devices->size());
    for (const auto* device : *devices) {
      const auto same = [index = device->index()](const device_sample& one) { return one.index == index; };
      const auto end = into.devices.begin() + static_cast<std::ptrdiff_t>(count);
      if (std::find_if(into.devices.begin(), end, same) != end) continue;
      left_out += unpack_device(*device, into.devices[count++]);
    }
  }
  into.devices.resize(count);
  return left_out;
}

}  // namespace infernex::monitor
