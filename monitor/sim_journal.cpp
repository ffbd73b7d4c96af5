#include "monitor/sim_journal.hpp"

#include <algorithm>

#include "monitor/sim_device.hpp"

namespace infernex::monitor {

hw_event& sim_journal::add(const sim_device& device, fb::HwEventKind kind, fb::HwSource source) {
  auto& event = events_.emplace_back();
  event.node = node_;
  event.device = device.index;
  event.vendor = device.model->vendor;
  event.device_id = device.id;
  event.bus_id = device.bus_id;
  event.time = time_ns_;
  event.kind = kind;
  event.source = source;
  return event;
}

void sim_journal::code(sim_device& device, std::uint64_t number, fb::HwAssertion assertion, fb::HwLevel level) {
  auto& present = device.codes;
  const auto at = std::ranges::find(present, number, &sim_code::number);
  if (assertion == fb::HwAssertion::Raised && at == present.end()) present.push_back({number, level});
  if (assertion == fb::HwAssertion::Cleared) {
    if (at == present.end()) return;
    present.erase(at);
  }
  auto& event = add(device, fb::HwEventKind::AscendCode, fb::HwSource::Dcmi);
  event.code = number;
  event.assertion = assertion;
  event.level = level;
}

void sim_journal::xid(const sim_device& device, std::uint32_t number, const std::string& about, std::uint32_t pid) {
  auto& event = add(device, fb::HwEventKind::Xid, fb::HwSource::KernelLog);
  event.code = number;
  event.text = "NVRM: Xid (PCI:" + device.bus_id + "): " + std::to_string(number) +
               ", pid=" + (pid ? std::to_string(pid) : std::string("'<unknown>'")) + ", " + about;
  if (pid) {
    event.pid = pid;
    event.process = "python3";
  }
}

void sim_journal::port(const sim_device& device, bool up) {
  auto& event = add(device, fb::HwEventKind::PortChange, fb::HwSource::Host);
  event.code = up ? 1 : 0;
  event.part = 0;
  event.assertion = up ? fb::HwAssertion::Cleared : fb::HwAssertion::Raised;
}

}  // namespace infernex::monitor
