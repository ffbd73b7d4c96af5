#pragma once

#include <chrono>
#include <cstdint>
#include <optional>
#include <string>

#include "diagnosis/engine.hpp"

namespace infernex::diagnosis {

struct settings {
  /// A folder with the knowledge base; empty: the one that is compiled in.
  std::string knowledge;
  /// A file with what operators change of rules; empty: none. Read anew when it changes, as the folder is.
  std::string overrides;
  engine_limits limits;
  /// Messages of each kind that may be queued or in hand at once; above it they are dropped and counted.
  std::uint32_t sample_credit = 16'384;
  std::uint32_t event_credit = 8'192;
  /// What stands is told again so often, for who has just started; 0: never.
  std::chrono::milliseconds repeat{10'000};
  /// Where /report, /report.txt, /verdicts, /metrics, /healthz and /readyz are served; port 0 takes a free one, unset
  /// serves none.
  std::string admin_address = "127.0.0.1";
  std::optional<std::uint16_t> admin_port;
};

}  // namespace infernex::diagnosis
