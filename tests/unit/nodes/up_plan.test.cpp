#include "nodes/up_plan.hpp"

#include <algorithm>

#include <doctest/doctest.h>

using namespace infernex;

namespace {

std::vector<std::string> names_of(const nodes::stack& planned) {
  std::vector<std::string> names;
  for (const auto& one : planned.children) names.push_back(one.name());
  return names;
}

bool has(const std::vector<std::string>& names, const std::string& one) {
  return std::find(names.begin(), names.end(), one) != names.end();
}

}  // namespace

TEST_CASE("a group of prefill and decode engines comes with a proxy, unless the gateway does its work") {
  nodes::node_settings settings;
  settings.up.engines = 0;
  settings.up.pd = {2, 1};
  const auto with_proxy = names_of(nodes::plan(settings, {}, "infernex", "nats-server"));
  CHECK(has(with_proxy, "proxy"));
  CHECK(has(with_proxy, "prefill-1"));
  CHECK(has(with_proxy, "decode-0"));
  settings.gateway.pd = gateway::pd_mode::embedded;
  const auto embedded = names_of(nodes::plan(settings, {}, "infernex", "nats-server"));
  CHECK_FALSE(has(embedded, "proxy"));
  CHECK(embedded.size() + 1 == with_proxy.size());
}
