#include "monitor/exporter_page.hpp"

#include <array>
#include <cmath>
#include <cstdio>

namespace infernex::monitor {

namespace {

constexpr double mebibyte = 1.0 / 1048576;

/// A metric by the name another exporter has for it; the value times `scale` is in that exporter's unit.
struct exported_metric {
  metric id;
  const char* name;
  const char* type;
  const char* help;
  double scale = 1;
};

constexpr std::array npu_metrics{
    exported_metric{metric::Temperature, "npu_chip_info_temperature", "gauge", "temperature, C"},
    exported_metric{metric::Power, "npu_chip_info_power", "gauge", "power, W"},
    exported_metric{metric::Voltage, "npu_chip_info_voltage", "gauge", "voltage, V"},
    exported_metric{metric::CoreClock, "npu_chip_info_aicore_current_freq", "gauge", "AI core clock, MHz"},
    exported_metric{metric::AicoreUtilization, "npu_chip_info_utilization", "gauge", "AI core utilization, %"},
    exported_metric{metric::Utilization, "npu_chip_info_overall_utilization", "gauge", "utilization, %"},
    exported_metric{metric::VectorUtilization, "npu_chip_info_vector_utilization", "gauge", "vector utilization, %"},
    exported_metric{metric::CubeUtilization, "npu_chip_info_cube_utilization", "gauge", "cube utilization, %"},
    exported_metric{metric::MemoryUsed, "npu_chip_info_hbm_used_memory", "gauge", "HBM in use, MB", mebibyte},
    exported_metric{metric::MemoryTotal, "npu_chip_info_hbm_total_memory", "gauge", "HBM, MB", mebibyte},
    exported_metric{metric::MemoryUtilization, "npu_chip_info_hbm_utilization", "gauge", "HBM in use, %"},
    exported_metric{metric::MemoryTemperature, "npu_chip_info_hbm_temperature", "gauge", "HBM temperature, C"},
    exported_metric{metric::MemoryBandwidthUtilization, "npu_chip_info_hbm_bandwidth_utilization", "gauge",
                    "HBM bandwidth in use, %"},
    exported_metric{metric::EccEnabled, "npu_chip_info_hbm_ecc_enable_flag", "gauge", "ECC on (1) or off (0)"},
    exported_metric{metric::EccSingle, "npu_chip_info_hbm_ecc_single_bit_error_cnt", "gauge", "single-bit errors"},
    exported_metric{metric::EccDouble, "npu_chip_info_hbm_ecc_double_bit_error_cnt", "gauge", "double-bit errors"},
    exported_metric{metric::EccSingleLifetime, "npu_chip_info_hbm_ecc_total_single_bit_error_cnt", "gauge",
                    "single-bit errors, lifetime"},
    exported_metric{metric::EccDoubleLifetime, "npu_chip_info_hbm_ecc_total_double_bit_error_cnt", "gauge",
                    "double-bit errors, lifetime"},
    exported_metric{metric::RetiredPagesSingle, "npu_chip_info_hbm_ecc_single_bit_isolated_pages_cnt", "gauge",
                    "pages isolated for single-bit errors"},
    exported_metric{metric::RetiredPagesDouble, "npu_chip_info_hbm_ecc_double_bit_isolated_pages_cnt", "gauge",
                    "pages isolated for double-bit errors"},
    exported_metric{metric::PortState, "npu_chip_info_link_status", "gauge", "network link up (1) or down (0)"},
    exported_metric{metric::PortUps, "npu_chip_link_up_num", "gauge", "times the link came up"},
    exported_metric{metric::ProcessCount, "npu_chip_info_process_info_num", "gauge", "processes"},
};

constexpr std::array dcgm_metrics{
    exported_metric{metric::CoreClock, "DCGM_FI_DEV_SM_CLOCK", "gauge", "SM clock, MHz"},
    exported_metric{metric::MemoryClock, "DCGM_FI_DEV_MEM_CLOCK", "gauge", "memory clock, MHz"},
    exported_metric{metric::MemoryTemperature, "DCGM_FI_DEV_MEMORY_TEMP", "gauge", "memory temperature, C"},
    exported_metric{metric::Temperature, "DCGM_FI_DEV_GPU_TEMP", "gauge", "GPU temperature, C"},
    exported_metric{metric::Power, "DCGM_FI_DEV_POWER_USAGE", "gauge", "power, W"},
    exported_metric{metric::EnergyTotal, "DCGM_FI_DEV_TOTAL_ENERGY_CONSUMPTION", "counter", "energy, mJ", 1000},
    exported_metric{metric::PcieReplays, "DCGM_FI_DEV_PCIE_REPLAY_COUNTER", "counter", "PCIe replays"},
    exported_metric{metric::Utilization, "DCGM_FI_DEV_GPU_UTIL", "gauge", "utilization, %"},
    exported_metric{metric::MemoryBandwidthUtilization, "DCGM_FI_DEV_MEM_COPY_UTIL", "gauge", "memory utilization, %"},
    exported_metric{metric::EncoderUtilization, "DCGM_FI_DEV_ENC_UTIL", "gauge", "encoder utilization, %"},
    exported_metric{metric::DecoderUtilization, "DCGM_FI_DEV_DEC_UTIL", "gauge", "decoder utilization, %"},
    exported_metric{metric::MemoryUsed, "DCGM_FI_DEV_FB_USED", "gauge", "frame buffer in use, MiB", mebibyte},
    exported_metric{metric::RemappedRowsUncorrectable, "DCGM_FI_DEV_UNCORRECTABLE_REMAPPED_ROWS", "counter",
                    "rows remapped for uncorrectable errors"},
    exported_metric{metric::RemappedRowsCorrectable, "DCGM_FI_DEV_CORRECTABLE_REMAPPED_ROWS", "counter",
                    "rows remapped for correctable errors"},
    exported_metric{metric::RowRemapFailure, "DCGM_FI_DEV_ROW_REMAP_FAILURE", "gauge", "remapping has failed (1)"},
    exported_metric{metric::EccSingle, "DCGM_FI_DEV_ECC_SBE_VOL_TOTAL", "counter", "single-bit errors, volatile"},
    exported_metric{metric::EccDouble, "DCGM_FI_DEV_ECC_DBE_VOL_TOTAL", "counter", "double-bit errors, volatile"},
    exported_metric{metric::EccSingleLifetime, "DCGM_FI_DEV_ECC_SBE_AGG_TOTAL", "counter", "single-bit errors"},
    exported_metric{metric::EccDoubleLifetime, "DCGM_FI_DEV_ECC_DBE_AGG_TOTAL", "counter", "double-bit errors"},
    exported_metric{metric::LinkCrcFlitErrors, "DCGM_FI_DEV_NVLINK_CRC_FLIT_ERROR_COUNT_TOTAL", "counter",
                    "NVLink flit CRC errors"},
    exported_metric{metric::LinkReplays, "DCGM_FI_DEV_NVLINK_REPLAY_ERROR_COUNT_TOTAL", "counter", "NVLink replays"},
    exported_metric{metric::LinkRecoveries, "DCGM_FI_DEV_NVLINK_RECOVERY_ERROR_COUNT_TOTAL", "counter",
                    "NVLink recoveries"},
};

std::string label_value(std::string_view text) {
  std::string out;
  for (const char c : text) {
    if (c == '\\' || c == '"') out += '\\';
    out += c == '\n' ? ' ' : c;
  }
  return out;
}

const device_info* info_of(const hw_inventory* about, std::uint32_t index) {
  if (about)
    for (const auto& one : about->devices)
      if (one->index == index) return one.get();
  return nullptr;
}

std::string npu_labels(const device_sample& device, const device_info* about) {
  const auto known = [about](auto member) { return about ? label_value(about->*member) : std::string(); };
  return "container_name=\"" + known(&device_info::container) + "\",id=\"" + std::to_string(device.index) +
         "\",model_name=\"" + known(&device_info::model) + "\",namespace=\"" + known(&device_info::pod_namespace) +
         "\",pcie_bus_info=\"" + known(&device_info::bus_id) + "\",pod_name=\"" + known(&device_info::pod) +
         "\",vdie_id=\"" + label_value(device.id) + "\"";
}

std::string dcgm_labels(const device_sample& device, const device_info* about, const std::string& node) {
  const auto known = [about](auto member) { return about ? label_value(about->*member) : std::string(); };
  const auto index = std::to_string(device.index);
  return "gpu=\"" + index + "\",UUID=\"" + label_value(device.id) + "\",pci_bus_id=\"" + known(&device_info::bus_id) +
         "\",device=\"nvidia" + index + "\",modelName=\"" + known(&device_info::model) + "\",Hostname=\"" +
         label_value(node) + "\",DCGM_FI_DRIVER_VERSION=\"" + known(&device_info::driver) + "\",namespace=\"" +
         known(&device_info::pod_namespace) + "\",pod=\"" + known(&device_info::pod) + "\",container=\"" +
         known(&device_info::container) + "\"";
}

struct exported_device {
  const device_sample* device;
  std::string labels;
};

void append_line(std::string& page, const char* name, const std::string& labels, double value) {
  char number[40];
  std::snprintf(number, sizeof number, value == std::floor(value) && std::abs(value) < 1e15 ? "%.0f" : "%.10g", value);
  page += name;
  page += '{';
  page += labels;
  page += "} ";
  page += number;
  page += '\n';
}

void append_head(std::string& page, const char* name, const char* type, const char* help) {
  page += "# HELP " + std::string(name) + " " + help + "\n# TYPE " + name + " " + type + "\n";
}

template <class Table>
void append_table(std::string& page, const Table& table, const std::vector<exported_device>& devices) {
  for (const auto& row : table) {
    bool first = true;
    for (const auto& one : devices) {
      const auto value = one.device->values.get(row.id);
      if (!value) continue;
      if (std::exchange(first, false)) append_head(page, row.name, row.type, row.help);
      append_line(page, row.name, one.labels, *value * row.scale);
    }
  }
}

/// DCMI's 0 is npu-exporter's 1 (good), all else its 0; likewise for the network.
void append_states(std::string& page, const std::vector<exported_device>& devices) {
  constexpr std::array states{
      exported_metric{metric::Health, "npu_chip_info_health_status", "gauge", "good (1) or bad (0)"},
      exported_metric{metric::NetworkHealth, "npu_chip_info_network_status", "gauge", "good (1) or bad (0)"}};
  for (const auto& row : states) {
    bool first = true;
    for (const auto& one : devices) {
      const auto value = one.device->values.get(row.id);
      if (!value) continue;
      if (std::exchange(first, false)) append_head(page, row.name, row.type, row.help);
      append_line(page, row.name, one.labels, *value == 0 ? 1 : 0);
    }
  }
  bool first = true;
  for (const auto& one : devices) {
    if (!one.device->codes || one.device->codes->empty()) continue;
    const char* name = "npu_chip_info_error_code";
    if (std::exchange(first, false)) append_head(page, name, "gauge", "the first fault code present");
    append_line(page, name, one.labels, static_cast<double>(one.device->codes->front()));
  }
}

}  // namespace

std::string render_exporter_page(const node_sample& sample, const hw_inventory* about) {
  std::vector<exported_device> npus;
  std::vector<exported_device> gpus;
  for (const auto& device : sample.devices) {
    const auto* info = info_of(about, device.index);
    if (device.vendor == fb::HwVendor::Ascend) npus.push_back({&device, npu_labels(device, info)});
    if (device.vendor == fb::HwVendor::Nvidia) gpus.push_back({&device, dcgm_labels(device, info, sample.node)});
  }
  std::string page;
  if (!npus.empty()) {
    append_head(page, "machine_npu_nums", "gauge", "NPUs of the machine");
    page += "machine_npu_nums " + std::to_string(npus.size()) + "\n";
  }
  append_table(page, npu_metrics, npus);
  append_states(page, npus);
  append_table(page, dcgm_metrics, gpus);
  return page;
}

}  // namespace infernex::monitor
