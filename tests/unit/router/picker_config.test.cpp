#include "actors/router/picker_config.hpp"

#include <algorithm>

#include <boost/json/serialize.hpp>
#include <doctest/doctest.h>

namespace infernex::router {
namespace {

using lines = std::vector<std::string>;

struct reading {
  scheduler_spec spec;
  lines remarks;
  lines mistakes;

  explicit reading(std::string_view text) {
    auto file = config::document::parse(text, "picker.yaml");
    spec = read_picker_config(file, "picker.yaml", remarks);
    for (const auto& one : file.problems()) mistakes.push_back(config::render(one));
  }
};

const std::string head =
    "apiVersion: llm-d.ai/v1\n"
    "kind: EndpointPickerConfig\n";

TEST_CASE("plugins, profiles and weights are read; names default to types, weights to one") {
  const reading r(head +
                  "plugins:\n"
                  "- name: cached\n"
                  "  type: overlap-scorer\n"
                  "  parameters: {device: 0.9, host: 0.5}\n"
                  "- type: waiting-scorer\n"
                  "- type: random-picker\n"
                  "  parameters: {maxNumOfEndpoints: 1}\n"
                  "schedulingProfiles:\n"
                  "- name: main\n"
                  "  plugins:\n"
                  "  - pluginRef: cached\n"
                  "    weight: 3\n"
                  "  - pluginRef: waiting-scorer\n"
                  "  - pluginRef: random-picker\n");
  CHECK(r.mistakes == lines{});
  CHECK(r.remarks == lines{});
  CHECK(r.spec.name == "picker.yaml");
  REQUIRE(r.spec.plugins.size() == 3);
  CHECK(r.spec.plugins[0].name == "cached");
  CHECK(boost::json::serialize(r.spec.plugins[0].parameters) == R"({"device":9E-1,"host":5E-1})");
  CHECK(r.spec.plugins[1].name.empty());
  REQUIRE(r.spec.profiles.size() == 1);
  CHECK(r.spec.profiles[0].name == "main");
  REQUIRE(r.spec.profiles[0].plugins.size() == 3);
  CHECK(r.spec.profiles[0].plugins[0].weight == 3);
  CHECK(r.spec.profiles[0].plugins[1].weight == 1);
}

TEST_CASE("every apiVersion of the form is accepted, and no other") {
  const std::string rest =
      "kind: EndpointPickerConfig\n"
      "plugins: [{type: random-picker}]\n"
      "schedulingProfiles: [{plugins: [{pluginRef: random-picker}]}]\n";
  for (const auto* version : {"inference.networking.x-k8s.io/v1alpha1", "llm-d.ai/v1alpha1", "llm-d.ai/v1"}) {
    CAPTURE(version);
    CHECK(reading("apiVersion: " + std::string(version) + "\n" + rest).mistakes == lines{});
  }
  CHECK(reading("apiVersion: llm-d.ai/v2\n" + rest).mistakes ==
        lines{"picker.yaml:1:13: apiVersion: one of inference.networking.x-k8s.io/v1alpha1, llm-d.ai/v1alpha1, "
              "llm-d.ai/v1, not \"llm-d.ai/v2\""});
  CHECK(reading(rest).mistakes == lines{"picker.yaml:1:1: apiVersion: missing"});
}

TEST_CASE("mistakes of form and of meaning are told all at once, each at its place") {
  const reading r(head +                                          // 1, 2
                  "plugins:\n"                                    // 3
                  "- type: overlap-scorer\n"                      // 4
                  "  parameters:\n"                               // 5
                  "    device: 1.5\n"                             // 6
                  "    hots: 0.5\n"                               // 7
                  "- type: kv-cache-utilisation-scorer\n"         // 8
                  "- name: two\n"                                 // 9
                  "- {type: random-picker, parametres: {}}\n"     // 10
                  "schedulingProfiles:\n"                         // 11
                  "- name: default\n"                             // 12
                  "  plugins:\n"                                  // 13
                  "  - pluginRef: overlap-scorer\n"               // 14
                  "    weight: heavy\n"                           // 15
                  "  - pluginRef: kv-cache-utilisation-scorer\n"  // 16
                  "  - pluginRef: overlap-scorre\n"               // 17
                  "  - weight: 2\n"                               // 18
                  "dataLayers: {}\n");                            // 19
  const lines expected{
      "picker.yaml:6:13: plugins[0].parameters.device: a number from 0 to 1, not 1.5E0",
      "picker.yaml:7:11: plugins[0].parameters.hots: an unknown parameter (did you mean \"host\"?)",
      "picker.yaml:8:9: plugins[1].type: no plugin of type \"kv-cache-utilisation-scorer\" (did you mean "
      "\"kv-cache-utilization-scorer\"?)",
      "picker.yaml:9:3: plugins[2].type: missing",
      "picker.yaml:10:25: plugins[3].parametres: unknown key; did you mean 'parameters'?",
      "picker.yaml:15:13: schedulingProfiles[0].plugins[0].weight: a number between 0 and 1e+06, not \"heavy\"",
      "picker.yaml:17:16: schedulingProfiles[0].plugins[2].pluginRef: no plugin is named \"overlap-scorre\" (did you "
      "mean \"overlap-scorer\"?)",
      "picker.yaml:18:5: schedulingProfiles[0].plugins[3].pluginRef: missing",
      "picker.yaml:19:1: dataLayers: unknown key; did you mean 'dataLayer'?"};
  REQUIRE(r.mistakes.size() == expected.size());
  for (std::size_t i = 0; i < expected.size(); ++i) CHECK(r.mistakes[i] == expected[i]);
}

TEST_CASE("an entry that is no mapping is told, and nothing is said of numbers it has shifted") {
  const reading r(head +
                  "plugins:\n"
                  "- overlap-scorer\n"
                  "- type: nonsense\n"
                  "schedulingProfiles: []\n");
  CHECK(r.mistakes == lines{"picker.yaml:4:3: plugins[0]: a mapping of keys, not \"overlap-scorer\""});
}

TEST_CASE("sections that mean nothing here are accepted, and named") {
  const reading r(head +
                  "featureGates: [flowControl]\n"
                  "plugins:\n"
                  "- type: random-picker\n"
                  "schedulingProfiles:\n"
                  "- plugins: [{pluginRef: random-picker}]\n"
                  "dataLayer: {injectDefaults: true, sources: [{pluginRef: metrics}]}\n"
                  "flowControl: {maxBytes: 1Gi, priorityBands: [{priority: 1}]}\n");
  CHECK(r.mistakes == lines{});
  REQUIRE(r.remarks.size() == 3);
  CHECK(r.remarks[0].find("featureGates is not used: ") == 0);
  CHECK(r.remarks[1].find("dataLayer is not used: ") == 0);
  CHECK(r.remarks[2].find("flowControl is not used: ") == 0);
}

TEST_CASE("a file that does not exist is a mistake with its name") {
  const auto read = load_picker_config("/nonexistent/picker.yaml");
  CHECK_FALSE(read.spec);
  CHECK_FALSE(read.stamp);
  REQUIRE(read.problems().size() == 1);
  CHECK(read.problems()[0].find("/nonexistent/picker.yaml: not_found") == 0);
}

}  // namespace
}  // namespace infernex::router
