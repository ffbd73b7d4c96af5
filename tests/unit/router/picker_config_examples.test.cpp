// Files of other systems, written out from what is known of their form, load unchanged.

#include <doctest/doctest.h>

#include "actors/router/picker_config.hpp"

namespace infernex::router {
namespace {

using lines = std::vector<std::string>;

picker_config example(const std::string& name) {
  return load_picker_config(INFERNEX_SOURCE_DIR "/tests/unit/router/data/" + name);
}

/// `plugin x weight` of a profile.
lines uses_of(const scheduler_spec::profile& profile) {
  lines out;
  for (const auto& use : profile.plugins)
    out.push_back(use.plugin + " x " + std::to_string(static_cast<int>(use.weight)));
  return out;
}

TEST_CASE("openFuyao: aggregated, KV-cache aware") {
  const auto read = example("openfuyao-aggregate.yaml");
  CHECK(read.problems() == lines{});
  REQUIRE(read.spec);
  REQUIRE(read.spec->profiles.size() == 1);
  CHECK(uses_of(read.spec->profiles[0]) == lines{"scorer-aggregate-kv-cache-aware x 1", "picker-min-random x 1"});
  CHECK(read.remarks == lines{});
}

TEST_CASE("openFuyao: PD by buckets") {
  const auto read = example("openfuyao-pd-bucket.yaml");
  CHECK(read.problems() == lines{});
  REQUIRE(read.spec);
  REQUIRE(read.spec->profiles.size() == 1);
  CHECK(uses_of(read.spec->profiles[0]) ==
        lines{"filter-by-pd-label x 1", "scorer-pd-bucket x 1", "pd-header-handler x 1"});
}

TEST_CASE("llm-d: what it does without a file") {
  const auto read = example("llm-d-default.yaml");
  CHECK(read.problems() == lines{});
  REQUIRE(read.spec);
  REQUIRE(read.spec->profiles.size() == 1);
  CHECK(uses_of(read.spec->profiles[0]) ==
        lines{"queue-scorer x 2", "kv-cache-utilization-scorer x 2", "prefix-cache-scorer x 3"});
  REQUIRE(read.remarks.size() == 1);
  CHECK(read.remarks[0].find("dataLayer is not used: ") == 0);
}

TEST_CASE("llm-d: prefill and decode apart, by a decider") {
  const auto read = example("llm-d-pd.yaml");
  CHECK(read.problems() == lines{});
  REQUIRE(read.spec);
  REQUIRE(read.spec->profiles.size() == 2);
  CHECK(uses_of(read.spec->profiles[0]) ==
        lines{"prefill-filter x 1", "max-score-picker x 1", "queue-scorer x 1", "cached x 2"});
  CHECK(uses_of(read.spec->profiles[1]) ==
        lines{"decode-filter x 1", "max-score-picker x 1", "queue-scorer x 1", "cached x 3"});
}

}  // namespace
}  // namespace infernex::router
