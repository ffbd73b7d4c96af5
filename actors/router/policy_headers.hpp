#pragma once

#include <string>
#include <vector>

#include "actors/router/scheduler.hpp"

namespace infernex::router {

/// A request header that a policy's plugins look at by its name, in lower case.
struct policy_header {
  std::string name;
  /// Answers have to carry it: the name of the engine that gave the answer, in base64 (header_use in plugin.hpp).
  bool names_engine = false;
  friend bool operator==(const policy_header&, const policy_header&) = default;
};

/// Those that the parameters of a configuration name, sorted, each once. None of one that is wrong.
std::vector<policy_header> headers_of(const scheduler_spec& spec);

}  // namespace infernex::router
