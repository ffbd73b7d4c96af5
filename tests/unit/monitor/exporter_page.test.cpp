#include "monitor/exporter_page.hpp"

#include <doctest/doctest.h>

#include "monitor/host_parse.hpp"
#include "monitor/sim_fleet.hpp"

using namespace infernex;
using namespace infernex::monitor;

namespace {

bool has(const std::string& page, std::string_view text) { return page.find(text) != std::string::npos; }

}  // namespace

TEST_CASE("devices are on the page under the names and in the units of their exporters") {
  node_sample sample;
  sample.node = "n0";
  sample.devices.resize(2);
  auto& npu = sample.devices[0];
  npu.vendor = fb::HwVendor::Ascend;
  npu.id = "VDIE";
  npu.values.set(metric::Temperature, 52);
  npu.values.set(metric::Power, 92.1);
  npu.values.set(metric::MemoryTotal, 32768.0 * 1048576);
  npu.values.set(metric::Health, 0);
  npu.codes = {0x81078603};
  auto& gpu = sample.devices[1];
  gpu.index = 1;
  gpu.vendor = fb::HwVendor::Nvidia;
  gpu.id = "GPU-1";
  gpu.values.set(metric::EnergyTotal, 12.5);
  gpu.values.set(metric::EccDouble, 0);
  hw_inventory about;
  about.devices.push_back(std::make_unique<device_info>());
  about.devices[0]->model = "910B4-\"x\"";
  about.devices[0]->bus_id = "0000:C1:00.0";
  const auto page = render_exporter_page(sample, &about);
  const std::string labels =
      "{container_name=\"\",id=\"0\",model_name=\"910B4-\\\"x\\\"\",namespace=\"\",pcie_bus_info=\"0000:C1:00.0\","
      "pod_name=\"\",vdie_id=\"VDIE\"} ";
  CHECK(has(page, "# TYPE npu_chip_info_temperature gauge\nnpu_chip_info_temperature" + labels + "52\n"));
  CHECK(has(page, "npu_chip_info_power" + labels + "92.1\n"));
  CHECK(has(page, "npu_chip_info_hbm_total_memory" + labels + "32768\n"));
  CHECK(has(page, "npu_chip_info_health_status" + labels + "1\n"));
  CHECK(has(page, "npu_chip_info_error_code" + labels + "2164753923\n"));
  CHECK(has(page, "machine_npu_nums 1\n"));
  CHECK(has(page, "DCGM_FI_DEV_TOTAL_ENERGY_CONSUMPTION{gpu=\"1\",UUID=\"GPU-1\""));
  CHECK(has(page, "} 12500\n"));
  CHECK(has(page, "DCGM_FI_DEV_ECC_DBE_VOL_TOTAL{"));  // zero is shown
  CHECK_FALSE(has(page, "npu_chip_info_voltage"));     // not measured is not
  CHECK(render_exporter_page({}, nullptr).empty());
}

TEST_CASE("every name on the page is there once, with its type before its values") {
  sim_settings settings;
  settings.model = "nvidia-h100";
  auto fleet = *sim_fleet::make(settings, {});
  fleet.step();
  const auto about = fleet.nodes()[0].inventory();
  const auto page = render_exporter_page(fleet.nodes()[0].sample(), &about);
  std::size_t types = 0;
  for (std::size_t at = 0; (at = page.find("# TYPE ", at)) != std::string::npos; ++at) {
    const auto line = page.substr(at, page.find('\n', at) - at);
    CHECK(page.find(line, at + 1) == std::string::npos);
    ++types;
  }
  CHECK(types >= 18);
}

TEST_CASE("the host's own numbers") {
  const auto before = parse_proc_stat("cpu  100 0 50 800 50 0 0 0 7 0\ncpu0 1 2 3 4\n");
  const auto now = parse_proc_stat("cpu  150 0 50 840 60 0 0 0 9 0\n");
  REQUIRE(before);
  REQUIRE(now);
  CHECK(before->total == 1000);
  CHECK(*cpu_utilization(*before, *now) == doctest::Approx(50));
  CHECK_FALSE(cpu_utilization(*now, *before));
  CHECK_FALSE(cpu_utilization(*now, *now));
  CHECK_FALSE(parse_proc_stat("cpu x y z w\n"));
  CHECK_FALSE(parse_proc_stat(""));
  CHECK(*parse_blocked_processes("cpu 1\nprocs_running 2\nprocs_blocked 3\n") == 3);
  readings memory;
  parse_meminfo("MemTotal:       1024 kB\nMemFree: 5 kB\nMemAvailable:    512 kB\n", memory);
  CHECK(*memory.get(metric::NodeMemoryTotal) == 1048576);
  CHECK(*memory.get(metric::NodeMemoryAvailable) == 524288);
  CHECK(*parse_loadavg("0.52 0.58 0.59 1/971 12345\n") == 0.52);
  CHECK_FALSE(parse_loadavg("x"));
  CHECK(*parse_aer_total("RxErr 1\nBadTLP 2\nTOTAL_ERR_COR 3\n") == 3);
  CHECK_FALSE(parse_aer_total("RxErr 1\n"));
}
