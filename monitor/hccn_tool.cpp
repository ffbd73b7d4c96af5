#include "monitor/hccn_tool.hpp"

#include <algorithm>
#include <array>

#include "monitor/text_scan.hpp"

namespace infernex::monitor {

namespace {

struct hccn_name {
  std::string_view name;
  metric id;
};

constexpr std::array hccn_counters{
    hccn_name{"mac_rx_fcs_err_pkt_num", metric::PortRxFcsErrors},
    hccn_name{"mac_tx_bad_pkt_num", metric::PortTxBadPackets},
    hccn_name{"mac_rx_bad_pkt_num", metric::PortRxBadPackets},
    hccn_name{"mac_tx_pfc_pkt_num", metric::PortTxPfc},
    hccn_name{"mac_rx_pfc_pkt_num", metric::PortRxPfc},
    hccn_name{"roce_tx_all_pkt_num", metric::RoceTxPackets},
    hccn_name{"roce_rx_all_pkt_num", metric::RoceRxPackets},
    hccn_name{"roce_tx_err_pkt_num", metric::RoceTxErrors},
    hccn_name{"roce_rx_err_pkt_num", metric::RoceRxErrors},
    hccn_name{"roce_tx_cnp_pkt_num", metric::RoceTxCnp},
    hccn_name{"roce_rx_cnp_pkt_num", metric::RoceRxCnp},
    hccn_name{"roce_new_pkt_rty_num", metric::RoceRetries},
    hccn_name{"roce_out_of_order_num", metric::RoceOutOfOrder},
    hccn_name{"roce_verification_err_num", metric::RoceVerificationErrors},
    hccn_name{"roce_qp_status_err_num", metric::RoceQpErrors},
    hccn_name{"roce_unexpected_ack_num", metric::RoceUnexpectedAcks},
    hccn_name{"link up count", metric::PortUps},
    hccn_name{"link down count", metric::PortDowns},
    hccn_name{"temperature", metric::OpticalTemperature},
    hccn_name{"Vcc", metric::OpticalVoltage},
};

// Followed by the number of the lane.
constexpr std::array hccn_lanes{
    hccn_name{"Tx Power", metric::OpticalTxPower},        hccn_name{"Rx Power", metric::OpticalRxPower},
    hccn_name{"Tx Bias", metric::OpticalTxBias},          hccn_name{"Host SNR Lane", metric::OpticalHostSnr},
    hccn_name{"Media SNR Lane", metric::OpticalMediaSnr},
};

constexpr std::array hccn_flags{
    hccn_name{"Tx Los Flag", metric::OpticalTxLos},
    hccn_name{"Rx Los Flag", metric::OpticalRxLos},
    hccn_name{"Tx LoL Flag", metric::OpticalTxLol},
    hccn_name{"Rx LoL Flag", metric::OpticalRxLol},
};

/// DCMI's number for the tool's words (reference, 1.2 and 1.3); one that we do not know is 255: not a success.
double health_of_words(std::string_view words) {
  constexpr std::array known{"Success", "Socket failed", "Receive timeout", "Unreachable",  "Time exceeded",
                             "Fault",   "Init",          "Thread error",    "Detect ip set"};
  for (std::size_t i = 0; i < known.size(); ++i)
    if (words == known[i]) return static_cast<double>(i);
  return 255;
}

bool take_lane(const key_value& line, hccn_page& into) {
  for (const auto& [name, id] : hccn_lanes) {
    if (!line.key.starts_with(name)) continue;
    const auto lane = parse_unsigned(line.key.substr(name.size()));
    if (!lane || *lane > 15) continue;
    into.values.set(id, parse_leading_number(line.value), static_cast<std::uint16_t>(*lane));
    return true;
  }
  return false;
}

bool take_state(const key_value& line, hccn_page& into) {
  if (line.key == "link status") {
    if (line.value == "UP" || line.value == "DOWN") into.values.set(metric::PortState, line.value == "UP");
  } else if (line.key == "net health status") {
    into.net_health = line.value;
    into.values.set(metric::NetworkHealth, health_of_words(line.value));
  } else if (line.key == "fec mode") {
    into.fec = line.value;
    into.values.set(metric::FecMode, line.value != "no FEC mode");
  } else if (line.key == "present") {
    into.values.set(metric::OpticalPresent, line.value == "present");
  } else if (line.key == "Speed") {
    into.values.set(metric::PortSpeed, parse_leading_number(line.value));
  } else {
    return false;
  }
  return true;
}

/// `    Tue Aug  1 14:43:40 2022    LINK UP`.
bool take_change(std::string_view line, hccn_page& into) {
  for (const bool up : {true, false}) {
    const std::string_view mark = up ? "LINK UP" : "LINK DOWN";
    if (!line.ends_with(mark)) continue;
    into.changes.push_back({std::string(trimmed(line.substr(0, line.size() - mark.size()))), up});
    return true;
  }
  return false;
}

void take_hccn_line(std::string_view line, hccn_page& into) {
  line = trimmed(line);
  if (line.starts_with("[devid ")) {
    const auto end = line.find(']');
    if (end == std::string_view::npos) return;
    line = trimmed(line.substr(end + 1));
  }
  if (take_change(line, into)) return;
  const auto parts = parse_key_value(line);
  if (!parts || take_state(*parts, into) || take_lane(*parts, into)) return;
  const auto named = [&](const hccn_name& one) { return one.name == parts->key; };
  if (const auto flag = std::ranges::find_if(hccn_flags, named); flag != hccn_flags.end()) {
    if (const auto bits = parse_hexadecimal(parts->value)) into.values.set(flag->id, static_cast<double>(*bits));
    return;
  }
  const auto number = parse_leading_number(parts->value);
  if (!number) return;
  if (const auto known = std::ranges::find_if(hccn_counters, named); known != hccn_counters.end())
    into.values.set(known->id, *number);
  else if (into.others.size() < 512)
    into.others[std::string(parts->key)] = *number;
}

}  // namespace

void parse_hccn(std::string_view text, hccn_page& into) {
  while (!text.empty()) take_hccn_line(next_line(text), into);
}

void parse_hccn_ip(std::string_view text, hccn_page& into) {
  while (!text.empty()) {
    const auto parts = parse_key_value(next_line(text));
    if (parts && parts->key == "ipaddr") into.address = parts->value;
    if (parts && parts->key == "netmask") into.netmask = parts->value;
  }
  into.values.set(metric::AddressConfigured, !into.address.empty() && !into.netmask.empty());
}

}  // namespace infernex::monitor
