// What holds of scorer-pd-bucket whatever the fleet, the loads and the prompts.

#include <algorithm>
#include <random>

#include "tests/unit/router/plugin_fixture.hpp"

namespace infernex::router {
namespace {

struct declared_range {
  std::uint64_t min;
  std::uint64_t max;  // 0: any
  bool takes(std::uint64_t tokens) const { return min <= tokens && (max == 0 || tokens <= max); }
};

/// Ranges one after the other without a gap; the last one may be open.
std::vector<declared_range> neighbours(std::mt19937_64& random, std::size_t count) {
  std::vector<declared_range> ranges;
  std::uint64_t from = 0;
  for (std::size_t i = 0; i < count; ++i) {
    const auto to = from + 1 + random() % 5'000;
    ranges.push_back({from, i + 1 == count && random() % 2 == 0 ? 0 : to});
    from = to + 1;
  }
  return ranges;
}

std::string parameters_of(const std::vector<declared_range>& ranges, std::string_view mode) {
  std::string json = R"({"mode": ")" + std::string(mode) + R"(", "ranges": [)";
  for (std::size_t i = 0; i < ranges.size(); ++i)
    json += (i == 0 ? "" : ", ") + (R"({"group": "g)" + std::to_string(i)) + R"(", "min": )" +
            std::to_string(ranges[i].min) + R"(, "max": )" + std::to_string(ranges[i].max) + "}";
  return json + "]}";
}

TEST_CASE("pd-bucket with declared ranges, or by chance in them: a prompt goes to its range or the next longer one") {
  std::mt19937_64 random(9);
  for (int round = 0; round < 300; ++round) {
    const auto ranges = neighbours(random, 1 + random() % 5);
    const auto by =
        make_plugin<scorer>("scorer-pd-bucket", parameters_of(ranges, round % 2 == 0 ? "declared" : "random"));
    plugin_bench b;
    b.leg = serving_leg::prefill;
    std::vector<std::size_t> group_of;
    for (std::size_t i = 0; i < 8; ++i) {
      group_of.push_back(random() % ranges.size());
      b.add("p" + std::to_string(i), roles::Prefill, "g" + std::to_string(group_of.back()));
      b.all.back().load.prefill_tokens = random() % 60'000;
    }
    const auto tokens = static_cast<std::uint32_t>(random() % 25'000);
    b.request.prompt_tokens = tokens;
    auto kept = b.all;
    by->filters()->apply(b.context(), kept);
    std::size_t own = ranges.size();
    for (std::size_t r = 0; r < ranges.size(); ++r)
      if (ranges[r].takes(tokens)) own = r;
    const auto present = [&](std::size_t range) {
      return std::find(group_of.begin(), group_of.end(), range) != group_of.end();
    };
    CAPTURE(tokens);
    if (own == ranges.size()) {
      CHECK(kept.empty());  // too long for all
      continue;
    }
    std::size_t next = own + 1;
    while (next < ranges.size() && !present(next)) ++next;
    CHECK(kept.empty() == (!present(own) && next == ranges.size()));
    bool some_own = false;
    for (const auto& c : kept) {
      const auto range = static_cast<std::size_t>(std::stoul(c.to->group.substr(1)));
      CHECK((range == own || range == next));  // never a shorter one, never two further
      some_own = some_own || range == own;
    }
    CHECK(some_own == present(own));
    // All of its own range stay: helpers come besides.
    std::size_t stayed = 0;
    for (const auto& c : kept) stayed += c.to->group == "g" + std::to_string(own);
    CHECK(stayed == static_cast<std::size_t>(std::count(group_of.begin(), group_of.end(), own)));
  }
}

TEST_CASE("pd-bucket with learned ranges: somebody takes every prompt, whoever is there and whatever was learned") {
  std::mt19937_64 random(10);
  const auto by = make_plugin<scorer>("scorer-pd-bucket");
  plugin_bench b;
  b.leg = serving_leg::prefill;
  b.request.block_size = 16;
  for (int round = 0; round < 600; ++round) {
    b.now += std::chrono::milliseconds(random() % 4'000);
    b.endpoints.clear();
    b.all.clear();
    for (std::size_t i = 0; i < 1 + random() % 6; ++i) {
      const auto group = "g" + std::to_string(random() % 4);
      b.add("d" + std::to_string(i), roles::Decode, group);
      b.all.pop_back();
      b.add("p" + std::to_string(i), roles::Prefill, group);
      b.all.back().load.prefill_tokens = random() % 60'000;
    }
    b.request.prompt_tokens = static_cast<std::uint32_t>(random() % 3 == 0 ? random() % 100'000 : random() % 3'000);
    auto kept = b.all;
    by->filters()->apply(b.context(), kept);
    REQUIRE_FALSE(kept.empty());
    for (std::uint64_t i = 0; i < random() % 20; ++i) by->routed(b.context(), kept[random() % kept.size()]);
  }
}

}  // namespace
}  // namespace infernex::router
