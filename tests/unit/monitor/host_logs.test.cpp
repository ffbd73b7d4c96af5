// hccn_tool's outputs and the kernel's log; and the outputs that were captured from real machines, where they are.
#include <fstream>
#include <sstream>

#include <doctest/doctest.h>

#include "monitor/hccn_tool.hpp"
#include "monitor/kernel_log.hpp"
#include "monitor/npu_smi.hpp"
#include "monitor/text_scan.hpp"

using namespace infernex;
using namespace infernex::monitor;

namespace {

/// Beside the sources, where there is such a folder.
std::optional<std::string> captured(const std::string& name) {
  std::ifstream file(INFERNEX_SOURCE_DIR "/../shared/data/hardware/captured/" + name);
  if (!file) return std::nullopt;
  std::ostringstream text;
  text << file.rdbuf();
  return text.str();
}

/// The output of one command of the capture: from the line behind it to the next command.
std::string output_of(const std::string& all, const std::string& command) {
  const auto at = all.find(command + "\n");
  REQUIRE(at != std::string::npos);
  const auto begin = at + command.size() + 1;
  return all.substr(begin, all.find("\n/usr/local", begin) - begin);
}

}  // namespace

TEST_CASE("a port's state, counters and changes") {
  hccn_page page;
  parse_hccn("link status: DOWN\n", page);
  parse_hccn("net health status: Receive timeout\nfec mode: rs FEC mode\n", page);
  parse_hccn(
      "[devid 0]link up count       : 2\n[devid 0]link down count     : 1\n"
      "[devid 0]link change records :\n[devid 0]    Tue Aug  1 14:43:40 2022    LINK UP\n",
      page);
  parse_hccn("packet statistics:\nmac_rx_fcs_err_pkt_num:7\nroce_new_pkt_rty_num:12\nmac_tx_total_pkt_num:99\n", page);
  CHECK(*page.values.get(metric::PortState) == 0);
  CHECK(*page.values.get(metric::NetworkHealth) == 2);
  CHECK(*page.values.get(metric::FecMode) == 1);
  CHECK(*page.values.get(metric::PortUps) == 2);
  CHECK(*page.values.get(metric::PortDowns) == 1);
  REQUIRE(page.changes.size() == 1);
  CHECK(page.changes[0].up);
  CHECK(page.changes[0].when == "Tue Aug  1 14:43:40 2022");
  CHECK(*page.values.get(metric::PortRxFcsErrors) == 7);
  CHECK(*page.values.get(metric::RoceRetries) == 12);
  CHECK(page.others.at("mac_tx_total_pkt_num") == 99);
  hccn_page none;
  parse_hccn_ip("\n", none);
  CHECK(*none.values.get(metric::AddressConfigured) == 0);
  parse_hccn("net health status: Something new\n", none);
  CHECK(*none.values.get(metric::NetworkHealth) == 255);
}

TEST_CASE("XIDs in all their forms") {
  auto event = parse_kernel_line(
      "6,1,2,-;NVRM: Xid (PCI:0000:5d:00): 31, pid=4711, name=python3, Ch 00000008, intr 00000000. MMU Fault");
  REQUIRE(event);
  CHECK(event->kind == fb::HwEventKind::Xid);
  CHECK(event->code == 31);
  CHECK(event->bus_id == "0000:5d:00");
  CHECK(event->pid == 4711);
  CHECK(event->process == "python3");
  event = parse_kernel_line("kernel: NVRM: Xid (0000:03:00): 14, Channel 00000001");
  REQUIRE(event);
  CHECK(event->code == 14);
  CHECK(event->bus_id == "0000:03:00");
  event =
      parse_kernel_line("NVRM: Xid (PCI:0000:04:00): 79, pid='<unknown>', name=<unknown>, GPU has fallen off the bus.");
  REQUIRE(event);
  CHECK(event->code == 79);
  CHECK_FALSE(event->pid.has_value());
  event = parse_kernel_line(
      "NVRM: Xid (PCI:0018:01:00): 145, RLW_CTRL Nonfatal XC0 i0 Link 00 (0x004505c6 0x00000000 0x0)");
  REQUIRE(event);
  CHECK(event->fatal == false);
  REQUIRE(event->words.size() == 3);
  CHECK(event->words[0] == 0x4505c6);
  CHECK(parse_kernel_line("NVRM: Xid (PCI:0018:01:00): 149, NETIR_LINK_EVT Fatal XC0 i0 Link 00 (0x1)")->fatal == true);
  event = parse_kernel_line(
      "NVRM: Xid (PCI:0000:05:00): 13, pid=1, Graphics SM Warp Exception on (GPC 2, TPC 4, SM 0): Out Of Range");
  REQUIRE(event);
  CHECK(event->unit == "GPC 2, TPC 4");
  event = parse_kernel_line("nvidia-nvswitch0: SXid (PCI:0000:a9:00.0): 12028, Non-fatal, Link 32 egress");
  REQUIRE(event);
  CHECK(event->kind == fb::HwEventKind::Sxid);
  CHECK(event->code == 12028);
  CHECK(event->fatal == false);
  for (const auto* not_one : {"NVRM: Xid (PCI:0000:05:00): x", "NVRM: Xid PCI:0000:05:00: 13", "NVRM: Xid (PCI:zz): 13",
                              "NVRM: loading", "", "NVRM: Xid ("})
    CHECK_FALSE(parse_kernel_line(not_one));
}

TEST_CASE("errors of the host, by their own words") {
  const auto level = [](std::string_view line) { return parse_kernel_line(line)->level; };
  CHECK(level("{1}[Hardware Error]: event severity: fatal") == fb::HwLevel::Critical);
  CHECK(level("{1}[Hardware Error]: event severity: recoverable") == fb::HwLevel::Major);
  CHECK(level("{1}[Hardware Error]: event severity: corrected") == fb::HwLevel::Hint);
  const auto aer = parse_kernel_line("pcieport 0000:00:01.0: PCIe Bus Error: severity=Corrected, type=Physical Layer");
  REQUIRE(aer);
  CHECK(aer->kind == fb::HwEventKind::PcieAer);
  CHECK(aer->bus_id == "0000:00:01.0");
  CHECK(aer->level == fb::HwLevel::Hint);
  CHECK(level("x 0000:00:01.0: PCIe Bus Error: severity=Uncorrected (Fatal), type=T") == fb::HwLevel::Critical);
  CHECK(level("x 0000:00:01.0: PCIe Bus Error: severity=Uncorrected (Non-Fatal), type=T") == fb::HwLevel::Major);
  CHECK(parse_kernel_line("INFO: task python3:12 blocked for more than 120 seconds.")->kind ==
        fb::HwEventKind::HungTask);
  CHECK(parse_kernel_line("EXT4-fs error (device sda1): ext4_find_entry")->kind == fb::HwEventKind::FileSystemError);
  CHECK_FALSE(parse_kernel_line("XFS (sda1): Mounting V5 Filesystem"));
}

TEST_CASE("what was captured from a 910A parses without loss") {
  const auto all = captured("hccn-npu-910a.txt");
  if (!all) return;
  const auto mapping = parse_npu_smi_mapping(output_of(*all, "/usr/local/bin/npu-smi info -m"));
  REQUIRE(mapping.size() == 8);
  CHECK(mapping[7].logic_id == 7);
  CHECK(mapping[7].name == "Ascend 910A");

  const std::string tool = "/usr/local/Ascend/driver/tools/hccn_tool -i 0 ";
  hccn_page port;
  for (const auto* option : {"-stat -g", "-link_stat -g", "-fec -g", "-net_health -g", "-optical -g"})
    parse_hccn(output_of(*all, tool + option), port);
  parse_hccn_ip(output_of(*all, tool + "-ip -g"), port);
  const auto number = [&port](metric id, std::uint16_t part = 0) { return port.values.get(id, part).value_or(-1); };
  CHECK(number(metric::RoceRxErrors) == 0);
  CHECK(number(metric::RoceTxErrors) == 0);
  CHECK(number(metric::PortUps) == 2);
  REQUIRE(port.changes.size() == 3);
  CHECK_FALSE(port.changes[1].up);
  CHECK(number(metric::FecMode) == 0);
  CHECK(number(metric::NetworkHealth) == 1);
  CHECK(number(metric::OpticalPresent) == 0);
  CHECK(number(metric::OpticalTemperature) == 47);
  CHECK(number(metric::OpticalVoltage) == 3262.90);
  CHECK(port.values.parts(metric::OpticalTxPower).size() == 4);
  CHECK(number(metric::OpticalTxPower) == 4.4035);
  CHECK(number(metric::OpticalRxPower, 1) == 0.0054);
  CHECK(number(metric::OpticalTxBias, 3) == 7.9240);
  CHECK(number(metric::OpticalRxLos) == 255);
  CHECK(number(metric::OpticalTxLos) == 0);
  CHECK(port.values.parts(metric::OpticalHostSnr).empty());  // not supported
  CHECK(number(metric::OpticalMediaSnr, 3) == 23.2969);
  CHECK(port.others.at("TxPower High Thres") == 3.5481);
  CHECK(port.address == "192.161.200.10");
  CHECK(number(metric::AddressConfigured) == 1);

  const std::string smi = "/usr/local/bin/npu-smi info -i 0 ";
  const auto chip_board = parse_npu_smi_values(output_of(*all, smi + "-c 0 -t board"));
  REQUIRE(chip_board.chips.size() == 1);
  CHECK(chip_board.chips[0].id == "42C711D4 20B03704 4A10C8D4 14CC040A D2102003");
  CHECK(chip_board.chips[0].bus_id == "0000:61:00.0");
  CHECK(chip_board.chips[0].name == "910A");
  const auto usages = parse_npu_smi_values(output_of(*all, smi + "-t usages"));
  REQUIRE(usages.chips.size() == 1);
  CHECK(usages.chips[0].chip == 0);
  CHECK(usages.chips[0].values.size() == 8);
  CHECK(*usages.chips[0].values.get(metric::MemoryTotal) == 31129.0 * 1048576);
  CHECK(*usages.chips[0].values.get(metric::DdrUtilization) == 6);
  const auto board = parse_npu_smi_values(output_of(*all, smi + "-t board"));
  REQUIRE(board.chips.size() == 1);
  CHECK(board.chips[0].driver == "23.0.5");
  CHECK(board.chips[0].firmware == "7.1.0.7.220");
  CHECK(*board.chips[0].values.get(metric::Compatibility) == 1);
  const auto health = parse_npu_smi_values(output_of(*all, smi + "-c 0 -t health"));
  REQUIRE(health.chips.size() == 1);
  CHECK(*health.chips[0].values.get(metric::Health) == 0);
  CHECK(health.chips[0].codes->empty());
}

TEST_CASE("what was captured of kernels: three lost heartbeats, of which one names a device; nothing in a clean log") {
  const auto lost = captured("kernel-npu-heartbeat-lost.log");
  if (!lost) return;
  std::vector<hw_event> events;
  for (std::string_view rest = *lost; !rest.empty();)
    if (auto event = parse_kernel_line(next_line(rest))) events.push_back(*std::move(event));
  REQUIRE(events.size() == 3);
  CHECK(events[0].device == 1);
  CHECK_FALSE(events[1].device.has_value());
  CHECK_FALSE(events[2].device.has_value());
  const auto clean = captured("kmsg-nvidia.log");
  REQUIRE(clean);
  for (std::string_view rest = *clean; !rest.empty();) CHECK_FALSE(parse_kernel_line(next_line(rest)));
}
