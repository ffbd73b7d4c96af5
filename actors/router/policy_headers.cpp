#include "actors/router/policy_headers.hpp"

#include <algorithm>

#include "actors/router/scheduler_build.hpp"

namespace infernex::router {

std::vector<policy_header> headers_of(const scheduler_spec& spec) {
  std::vector<spec_problem> problems;
  const auto built = build(spec, problems);
  if (!problems.empty()) return {};
  std::vector<header_use> used;
  for (const auto& [name, made] : built.plugins) std::visit([&](const auto& held) { held->add_headers(used); }, made);
  std::vector<policy_header> all;
  for (const auto& one : used) {
    const auto known = std::find_if(all.begin(), all.end(), [&](const auto& h) { return h.name == one.name; });
    if (known == all.end())
      all.push_back({std::string(one.name), one.names_engine});
    else
      known->names_engine = known->names_engine || one.names_engine;
  }
  std::sort(all.begin(), all.end(), [](const auto& a, const auto& b) { return a.name < b.name; });
  return all;
}

}  // namespace infernex::router
