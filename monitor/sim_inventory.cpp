#include <algorithm>
#include <cmath>

#include "monitor/sim_node.hpp"

// What a simulated node is, and its own readings.
namespace infernex::monitor {

hw_inventory sim_node::inventory() const {
  hw_inventory all;
  all.node = sample_.node;
  all.time = time_ns();
  all.boot_id = sample_.node + "-boot-1";
  all.kernel = "5.10.0-sim";
  all.expected_devices = settings_.devices;
  all.sources = {fb::HwSource::Simulator};
  const auto half = settings_.devices / 2;
  for (const auto& device : devices_) {
    const auto& m = *device.model;
    auto one = std::make_unique<device_info>();
    one->index = device.index;
    one->vendor = m.vendor;
    one->model = m.name;
    one->serial = device.serial;
    one->id = device.id;
    one->bus_id = device.bus_id;
    one->driver = m.driver;
    one->firmware = device.condition.compatibility == 2 ? "6.3.0.1.241" : std::string(m.firmware);
    one->present = device.condition.present;
    one->memory_bytes = static_cast<std::uint64_t>(static_cast<double>(m.memory_bytes) * device.condition.memory_share);
    one->rated_clock_mhz = m.rated_mhz;
    one->slowdown_celsius = m.slowdown_celsius;
    if (m.vendor == fb::HwVendor::Nvidia) one->power_limit_watts = m.most_watts;
    for (std::uint16_t part = 0; part < m.links; ++part) {
      auto link = std::make_unique<fb::HwLinkT>();
      link->part = part;
      if (m.vendor == fb::HwVendor::Nvidia) {
        link->kind = fb::HwLinkKind::Nvlink;
        link->peer_name = "NVSwitch" + std::to_string(part);
      } else {
        link->kind = fb::HwLinkKind::Hccs;
        link->peer = (device.index + 1U + part) % settings_.devices;
      }
      one->links.push_back(std::move(link));
    }
    if (half > 0) one->neighbours = {device.index >= half ? device.index - half : device.index + half};
    one->numa_node = device.index >= half ? 1U : 0U;
    if (m.vendor == fb::HwVendor::Ascend) {
      one->address = "10.1." + std::to_string(device.index) + ".1";
      one->netmask = "255.255.255.0";
      one->fec = device.condition.fec ? "rs FEC mode" : "no FEC mode";
    }
    all.devices.push_back(std::move(one));
  }
  return all;
}

void sim_node::read_node(std::size_t found) {
  double load = 0;
  for (const auto& group : groups_) load += group.load();
  load /= static_cast<double>(std::max<std::size_t>(1, groups_.size()));
  auto& to = sample_.values;
  to.clear();
  to.set(metric::NodeCpuUtilization, std::clamp(std::round(5 + 30 * load + 2 * random_.noise()), 0.0, 100.0));
  to.set(metric::NodeLoad1, std::max(0.0, 4 + 40 * load + random_.noise()));
  to.set(metric::NodeMemoryTotal, 1024.0 * 1073741824.0);
  to.set(metric::NodeMemoryAvailable, (900 - 300 * load) * 1073741824.0);
  to.set(metric::NodeDevicesExpected, settings_.devices);
  to.set(metric::NodeDevicesFound, static_cast<double>(found));
  to.set(metric::NodePciDevicesFound, static_cast<double>(found));
  const auto hung = std::ranges::count_if(devices_, [](const auto& one) { return one.influence.hang_ms != 0; });
  to.set(metric::NodeBlockedProcesses, static_cast<double>(hung));
}

}  // namespace infernex::monitor
