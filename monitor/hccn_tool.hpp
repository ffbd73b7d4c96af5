#pragma once

#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "monitor/device_sample.hpp"

namespace infernex::monitor {

struct link_change {
  /// As the tool writes it, e.g. `Tue Aug  1 14:43:40 2022` (the device's clock).
  std::string when;
  bool up = false;
};

/// What the outputs of `hccn_tool -i N -X -g` say of one device's port; several may be read into one.
struct hccn_page {
  readings values;
  /// Of `-link_stat`, newest first.
  std::vector<link_change> changes;
  std::string address;
  std::string netmask;
  std::string fec;
  std::string net_health;
  /// Numbers that no metric stands for: thresholds of the optic, further counters, by the tool's own names.
  std::map<std::string, double> others;
};

/// Reads any of its outputs but `-ip` (reference, 1.3): what each line is shows from the line. What is not understood
/// is left out.
void parse_hccn(std::string_view text, hccn_page& into);

/// `-ip -g`: an output without an address means that there is none.
void parse_hccn_ip(std::string_view text, hccn_page& into);

}  // namespace infernex::monitor
