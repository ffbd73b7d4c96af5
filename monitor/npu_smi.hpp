#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "monitor/source.hpp"

namespace infernex::monitor {

/// One chip as npu-smi tells of it. Text that was not there is empty.
struct smi_chip {
  std::uint32_t npu = 0;
  /// Nothing: the output is of the card as a whole.
  std::optional<std::uint32_t> chip;
  std::optional<std::uint32_t> physical_id;
  std::string name;
  std::string bus_id;
  std::string id;
  std::string serial;
  std::string driver;
  std::string firmware;
  std::string board;
  readings values;
  /// Nothing: not asked for; empty: none present.
  std::optional<std::vector<std::uint64_t>> codes;
};

/// What an output of npu-smi says.
struct smi_page {
  /// From the table's first line.
  std::string version;
  std::vector<smi_chip> chips;
  /// Lines that say what cannot be told, and what `ret is -8005` and its kin mean for the operator.
  std::vector<std::string> unsupported;
  std::vector<std::string> problems;
};

/// The table of `npu-smi info`, of any version: columns are found by their headings, values by their order, never by
/// their place in the line (reference, 1.4 A). A number that cannot be read is left out.
smi_page parse_npu_smi_table(std::string_view text);

/// What `npu-smi info -t TYPE -i N [-c C]` says, `key : value` a line, for every type (1.4 B). Blocks of several chips
/// end with their `Chip ID`, or begin with it; a block of the MCU is left out.
smi_page parse_npu_smi_values(std::string_view text);

/// `npu-smi info -m`: which chip is which device. MCUs are left out.
struct smi_mapping {
  std::uint32_t npu = 0;
  std::uint32_t chip = 0;
  std::uint32_t logic_id = 0;
  std::string name;
};
std::vector<smi_mapping> parse_npu_smi_mapping(std::string_view text);

/// The page as a monitor's round. A chip that the mapping does not have counts by its place among the page's chips; a
/// card as a whole is its chip 0.
reading_round to_round(const smi_page& page, const std::vector<smi_mapping>& mapping);

}  // namespace infernex::monitor
