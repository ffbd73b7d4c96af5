#include "monitor/npu_smi.hpp"

#include <doctest/doctest.h>

using namespace infernex;
using namespace infernex::monitor;

namespace {

constexpr std::string_view four_on_24 =
    "+------------------------------------------------------------------------------------------------+\n"
    "| npu-smi 24.1.rc3                 Version: 24.1.rc3                                              |\n"
    "+---------------------------+---------------+----------------------------------------------------+\n"
    "| NPU   Name                | Health        | Power(W)    Temp(C)           Hugepages-Usage(page)|\n"
    "| Chip                      | Bus-Id        | AICore(%)   Memory-Usage(MB)  HBM-Usage(MB)        |\n"
    "+===========================+===============+====================================================+\n"
    "| 0     910B4               | OK            | 92.1        52                0    / 0             |\n"
    "| 0                         | 0000:C1:00.0  | 0           0    / 0          2828 / 32768         |\n"
    "+===========================+===============+====================================================+\n"
    "| 1     910B4               | Alarm         | NA          -                 0    / 0             |\n"
    "| 0                         | 0000:01:00.0  | 99          0    / 0          30100/ 32768         |\n"
    "+===========================+===============+====================================================+\n"
    "+---------------------------+---------------+----------------------------------------------------+\n"
    "| NPU     Chip              | Process id    | Process name             | Process memory(MB)      |\n"
    "+===========================+===============+====================================================+\n"
    "| No running processes found in NPU 0                                                            |\n"
    "+===========================+===============+====================================================+\n"
    "| 1       0                 | 4711          | python3                  | 27000                   |\n"
    "| 1       0                 | 4712          | python3                  | 300                     |\n"
    "+===========================+===============+====================================================+\n";

double value(const smi_chip& chip, metric id) {
  const auto read = chip.values.get(id);
  REQUIRE(read);
  return *read;
}

}  // namespace

TEST_CASE("the table of a 910B4, with what is NA left out") {
  const auto page = parse_npu_smi_table(four_on_24);
  CHECK(page.version == "24.1.rc3");
  REQUIRE(page.chips.size() == 2);
  const auto& first = page.chips[0];
  CHECK(first.name == "910B4");
  CHECK(first.bus_id == "0000:C1:00.0");
  CHECK(first.chip == 0);
  CHECK(value(first, metric::Health) == 0);
  CHECK(value(first, metric::Power) == 92.1);
  CHECK(value(first, metric::Temperature) == 52);
  CHECK(value(first, metric::AicoreUtilization) == 0);
  CHECK(value(first, metric::MemoryUsed) == 2828.0 * 1048576);
  CHECK(value(first, metric::MemoryTotal) == 32768.0 * 1048576);
  CHECK_FALSE(first.values.get(metric::DdrTotal));  // 0 / 0: it has none
  CHECK(value(first, metric::ProcessCount) == 0);
  const auto& second = page.chips[1];
  CHECK(second.npu == 1);
  CHECK(value(second, metric::Health) == 2);
  CHECK_FALSE(second.values.get(metric::Power));
  CHECK_FALSE(second.values.get(metric::Temperature));
  CHECK(value(second, metric::MemoryUsed) == 30100.0 * 1048576);
  CHECK(value(second, metric::ProcessCount) == 2);
}

TEST_CASE("two chips of an NPU with Phy-ID, a 310P with Device, and a table without chips") {
  const auto two = parse_npu_smi_table(
      "| npu-smi 26.0.rc1                  Version: 26.0.rc1                                     |\n"
      "| NPU   Name                 | Health       | Power(W)    Temp(C)      Hugepages-Usage(page) |\n"
      "| Chip  Phy-ID               | Bus-Id       | AICore(%)   Memory-Usage(MB)  HBM-Usage(MB)    |\n"
      "+============================+==============+================================================+\n"
      "| 0     Ascend910            | OK           | 175.9       37           0    / 0              |\n"
      "| 0     0                    | 0000:9D:00.0 | 3           0    / 0     61958/ 65536          |\n"
      "| 0     Ascend910            | OK           | -           36           0    / 0              |\n"
      "| 1     1                    | 0000:9F:00.0 | 4           0    / 0     2877 / 65536          |\n");
  REQUIRE(two.chips.size() == 2);
  CHECK(two.chips[1].chip == 1);
  CHECK(two.chips[1].physical_id == 1);
  CHECK_FALSE(two.chips[1].values.get(metric::Power));
  CHECK(value(two.chips[1], metric::Temperature) == 36);
  CHECK(value(two.chips[0], metric::MemoryUsed) == 61958.0 * 1048576);

  const auto inference = parse_npu_smi_table(
      "| NPU     Name              | Health          | Power(W)     Temp(C)           Hugepages-Usage(page) |\n"
      "| Chip    Device            | Bus-Id          | AICore(%)    Memory-Usage(MB)                        |\n"
      "+===========================+=================+======================================================+\n"
      "| 2       310P3             | OK              | NA           45                0     / 0             |\n"
      "| 0       0                 | 0000:02:00.0    | 0            1700 / 21527                            |\n");
  REQUIRE(inference.chips.size() == 1);
  CHECK(inference.chips[0].npu == 2);
  CHECK(value(inference.chips[0], metric::DdrUsed) == 1700.0 * 1048576);
  CHECK_FALSE(inference.chips[0].values.get(metric::MemoryTotal));

  const auto chipless = parse_npu_smi_table(
      "| NPU ID  | Name      | Health | Power(W)  Temp(C)  | NPU Util(%)  HBM-Usage(MB)  |\n"
      "+=========+===========+========+====================+=============================+\n"
      "| 3       | Ascend950 | OK     | 110.0     41       | 17           100 / 131072   |\n"
      "| 4       | Ascend950 | UNKNOWN| 111.0     42       | 18           100 / 131072   |\n");
  REQUIRE(chipless.chips.size() == 2);
  CHECK(chipless.chips[0].name == "Ascend950");
  CHECK(value(chipless.chips[0], metric::Utilization) == 17);
  CHECK(chipless.chips[1].npu == 4);
  CHECK_FALSE(chipless.chips[1].values.get(metric::Health));
}

TEST_CASE("every cut of a table gives some of its values and none that it has not") {
  const auto whole = parse_npu_smi_table(four_on_24);
  for (std::size_t size = 0; size < four_on_24.size(); ++size) {
    const auto cut = parse_npu_smi_table(four_on_24.substr(0, size));
    REQUIRE(cut.chips.size() <= whole.chips.size());
    for (std::size_t i = 0; i < cut.chips.size(); ++i)
      CHECK(cut.chips[i].values.size() <= whole.chips[i].values.size());
  }
}

TEST_CASE("blocks that end with their chip, that begin with it, and the MCU's") {
  const auto ending = parse_npu_smi_values(
      "\tNPU ID                         : 4\n\tChip Count                     : 2\n\n"
      "\tNPU Temperature (C)            : 39\n\tChip ID                        : 0\n"
      "\tNPU Temperature (C)            : 41\n\tChip ID                        : 1\n"
      "\tLM75A_TE (C)                   : 33\n\tNPU Temperature (C)            : 99\n\tChip Name : mcu\n");
  REQUIRE(ending.chips.size() == 2);
  CHECK(ending.chips[0].npu == 4);
  CHECK(value(ending.chips[0], metric::Temperature) == 39);
  CHECK(ending.chips[1].chip == 1);
  CHECK(value(ending.chips[1], metric::Temperature) == 41);

  const auto beginning = parse_npu_smi_values(
      "NPU ID : 0\nChip Count : 2\nChip ID : 0\nAicore Freq(MHZ) : 1650\nAicore curFreq(MHZ) : 800\n"
      "Chip ID : 1\nAicore Freq(MHZ) : 1650\nAicore curFreq(MHZ) : 1650\n");
  REQUIRE(beginning.chips.size() == 2);
  CHECK(value(beginning.chips[0], metric::CoreClock) == 800);
  CHECK(value(beginning.chips[1], metric::CoreClock) == 1650);
  CHECK(beginning.chips[1].chip == 1);
}

TEST_CASE("health, codes, ECC, board, and what cannot be told") {
  auto page = parse_npu_smi_values(
      "Health Status : Alarm\nError Code : 80E01801 0x200001002\nError Information : two words\n"
      "HBM Single Bit Error Count : 3\nHBM Double Bit Error Count : NA\n"
      "HBM Double Bit Aggregate Total Err Cnt : 1778\nCompatibility : NOK\nSoftware Version : 24.1.0.3\n");
  REQUIRE(page.chips.size() == 1);
  CHECK(value(page.chips[0], metric::Health) == 2);
  CHECK(page.chips[0].codes == std::vector<std::uint64_t>{0x80E01801, 0x200001002});
  CHECK(value(page.chips[0], metric::EccSingle) == 3);
  CHECK_FALSE(page.chips[0].values.get(metric::EccDouble));
  CHECK(value(page.chips[0], metric::EccDoubleLifetime) == 1778);
  CHECK(value(page.chips[0], metric::Compatibility) == 2);
  CHECK(page.chips[0].driver == "24.1.0.3");

  page = parse_npu_smi_values("Health Status : OK\nError Code : NA\n");
  REQUIRE(page.chips.size() == 1);
  REQUIRE(page.chips[0].codes);
  CHECK(page.chips[0].codes->empty());
  CHECK_FALSE(parse_npu_smi_values("Health Status : OK\nError Code : garbled\n").chips[0].codes);

  page = parse_npu_smi_values(
      "Fault Event Count : 1\nFault Event Information : event id=0x81AF8000, severity=2, node type ex=215\n");
  REQUIRE(page.chips.size() == 1);
  CHECK(page.chips[0].codes == std::vector<std::uint64_t>{0x81AF8000});

  page = parse_npu_smi_values("This device does not support querying ecc.\n");
  CHECK(page.chips.empty());
  CHECK(page.unsupported.size() == 1);
  page = parse_npu_smi_values("dcmi module initialize failed. ret is -8005\n");
  REQUIRE(page.problems.size() == 1);
  CHECK(page.problems[0].find("mounted") != std::string::npos);
}

TEST_CASE("chips become devices by the mapping") {
  const auto mapping = parse_npu_smi_mapping(
      "NPU ID   Chip ID   Chip Logic ID   Chip Name\n"
      "4        0         2               Ascend 910B4\n"
      "4        1         3               Ascend 910B4\n"
      "4        2         -               Mcu\n");
  REQUIRE(mapping.size() == 2);
  CHECK(mapping[1].name == "Ascend 910B4");
  const auto found = to_round(parse_npu_smi_values("NPU ID : 4\nChip ID : 1\nTemperature (C) : 50\n"), mapping);
  REQUIRE(found.devices.size() == 1);
  CHECK(found.devices[0].index == 3);
  CHECK(*found.devices[0].values.get(metric::Temperature) == 50);
}
