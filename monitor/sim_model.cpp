#include "monitor/sim_model.hpp"

#include <array>

namespace infernex::monitor {

std::span<const sim_model> sim_models() {
  static constexpr std::array models{
      sim_model{.key = "ascend-910b",
                .vendor = fb::HwVendor::Ascend,
                .name = "910B4",
                .driver = "24.1.0.3",
                .firmware = "7.5.0.5.220",
                .idle_watts = 92,
                .most_watts = 300,
                .base_celsius = 14,
                .resistance = 0.13,
                .memory_base_celsius = 15,
                .memory_resistance = 0.10,
                .time_constant = 18,
                .coupling = 0.012,
                .slowdown_celsius = 105,
                .rated_mhz = 1650,
                .idle_mhz = 1650,
                .memory_mhz = 1600,
                .memory_bytes = 32768ULL << 20,
                .links = 7},
      sim_model{.key = "nvidia-h100",
                .vendor = fb::HwVendor::Nvidia,
                .name = "NVIDIA H100 80GB HBM3",
                .driver = "550.90.07",
                .firmware = "96.00.89.00.01",
                .idle_watts = 70,
                .most_watts = 700,
                .base_celsius = 6,
                .resistance = 0.055,
                .memory_base_celsius = 12,
                .memory_resistance = 0.058,
                .time_constant = 12,
                .coupling = 0.006,
                .slowdown_celsius = 89,  // T.Limit of -2 with 87 as the limit
                .rated_mhz = 1980,
                .idle_mhz = 345,
                .memory_mhz = 2619,
                .memory_bytes = 81559ULL << 20,
                .links = 4},
  };
  return models;
}

const sim_model* find_sim_model(std::string_view key) {
  for (const auto& model : sim_models())
    if (model.key == key) return &model;
  return nullptr;
}

}  // namespace infernex::monitor
