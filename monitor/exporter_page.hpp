#pragma once

#include <string>

#include "monitor/device_sample.hpp"

namespace infernex::monitor {

/// A node's sample as a Prometheus page (text format 0.0.4) under the names that dashboards know: npu-exporter's for
/// Ascend, dcgm-exporter's for NVIDIA, with their labels and units. What was not measured is not on the page, and a
/// device that is not read any more leaves it. `about`: for model names and addresses; may be null.
std::string render_exporter_page(const node_sample& sample, const hw_inventory* about);

}  // namespace infernex::monitor
