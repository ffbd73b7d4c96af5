#include "actors/router/picker_config.hpp"

#include <filesystem>

namespace infernex::router {
namespace {

const std::vector<std::string_view> versions{"inference.networking.x-k8s.io/v1alpha1", "llm-d.ai/v1alpha1",
                                             "llm-d.ai/v1"};

constexpr double most_weight = 1e6;

/// Sections of other systems' files that have no counterpart here.
struct unused_section {
  std::string_view key;
  std::string_view why;
};
constexpr unused_section unused_sections[] = {
    {"featureGates", "nothing here is behind a gate"},
    {"dataLayer", "agents gather what engines measure"},
    {"flowControl", "policy.queue says how requests wait"},
    {"saturationDetector", "policy.queue says how requests wait"},
    {"requestHandler", "the gateway parses requests"},
    {"parser", "the gateway parses requests"},
};

struct reader {
  config::document& file;
  scheduler_spec& into;
  /// An entry that is no mapping shifts the numbers of the others: problems found by number would point at the wrong
  /// ones.
  bool numbered_right = true;

  std::vector<config::section> list(config::section& at, std::string_view key) {
    const auto before = file.problems().size();
    auto entries = at.list(key);
    numbered_right = numbered_right && file.problems().size() == before;
    return entries;
  }

  void read_plugins(config::section& root) {
    for (auto& at : list(root, "plugins")) {
      auto& plugin = into.plugins.emplace_back();
      at.require("type").read("name", plugin.name).read("type", plugin.type).read("parameters", plugin.parameters);
    }
  }

  void read_profiles(config::section& root) {
    for (auto& at : list(root, "schedulingProfiles")) {
      auto& profile = into.profiles.emplace_back();
      at.read("name", profile.name);
      for (auto& entry : list(at, "plugins")) {
        auto& use = profile.plugins.emplace_back();
        entry.require("pluginRef").read("pluginRef", use.plugin).read("weight", use.weight, 0, most_weight);
      }
    }
  }
};

/// What is missing is told by the reader already.
bool is_told(const spec_problem& problem, const scheduler_spec& spec) {
  for (std::size_t i = 0; i < spec.plugins.size(); ++i)
    if (spec.plugins[i].type.empty() && problem.path == "plugins[" + std::to_string(i) + "].type") return true;
  for (std::size_t p = 0; p < spec.profiles.size(); ++p)
    for (std::size_t u = 0; u < spec.profiles[p].plugins.size(); ++u)
      if (spec.profiles[p].plugins[u].plugin.empty() &&
          problem.path == "schedulingProfiles[" + std::to_string(p) + "].plugins[" + std::to_string(u) + "].pluginRef")
        return true;
  return false;
}

}  // namespace

scheduler_spec read_picker_config(config::document& file, std::string name, std::vector<std::string>& remarks) {
  scheduler_spec spec;
  spec.name = std::move(name);
  auto root = file.root();
  std::string version, kind;
  root.require("apiVersion").read_choice("apiVersion", version, versions);
  root.require("kind").read_choice("kind", kind, {"EndpointPickerConfig"});
  reader of{file, spec};
  of.read_plugins(root);
  of.read_profiles(root);
  for (const auto& [key, why] : unused_sections)
    if (root.has(key)) remarks.push_back(std::string(key) + " is not used: " + std::string(why));
  if (!of.numbered_right) return spec;
  std::vector<spec_problem> wrong;
  scheduler::make(spec, wrong);
  for (auto& one : wrong)
    if (!is_told(one, spec)) root.complain_below(one.path, std::move(one.message));
  return spec;
}

std::vector<std::string> picker_config::problems() const {
  std::vector<std::string> lines;
  for (const auto& one : mistakes) lines.push_back(config::render(one));
  return lines;
}

picker_config load_picker_config(const std::string& file) {
  picker_config out;
  out.stamp = config::stamp_of(file);
  auto read = config::document::load(file);
  if (!read) {
    out.mistakes.push_back({file, 0, 0, {}, render(read.failure())});
    return out;
  }
  auto spec = read_picker_config(*read, std::filesystem::path(file).filename().string(), out.remarks);
  out.mistakes = read->problems();
  if (out.mistakes.empty()) out.spec = std::move(spec);
  return out;
}

}  // namespace infernex::router
