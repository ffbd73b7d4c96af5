#pragma once

#include <optional>
#include <string_view>

#include "monitor/device_sample.hpp"

namespace infernex::monitor {

/// What a line of the kernel's log says of hardware: XID, SXID, a lost NPU heartbeat, a hardware error record, PCIe
/// AER, a hung task, a file system's error. Both forms of the line are read: `6,3964,206764307,-;text` (/dev/kmsg) and
/// syslog's. Nothing: none of these. Node and time are left to the caller; which device a PCI address is, too
/// (`bus_id`).
std::optional<hw_event> parse_kernel_line(std::string_view line);

}  // namespace infernex::monitor
