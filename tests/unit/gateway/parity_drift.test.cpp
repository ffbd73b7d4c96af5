#include "gateway/parity_drift.hpp"

#include <vector>

#include <doctest/doctest.h>

using namespace infernex::gateway;

namespace {

/// The notices of so many requests alike.
std::vector<parity_drift::notice> after(parity_drift& d, int requests, std::uint32_t predicted, std::uint32_t reported,
                                        const char* instance = "e0") {
  std::vector<parity_drift::notice> all;
  for (int i = 0; i < requests; ++i)
    if (const auto one = d.note(instance, predicted, reported)) all.push_back(*one);
  return all;
}

}  // namespace

TEST_CASE("agreement, and small differences, are never a drift") {
  parity_drift d({});
  CHECK(after(d, 500, 1024, 1024).empty());
  CHECK(after(d, 500, 1024, 900).empty());
  CHECK(after(d, 500, 0, 0).empty());
  CHECK(after(d, 500, 0, 1, "idle").empty());  // too few tokens to say anything
}

TEST_CASE("a drift is told once, with its sums, and its end once") {
  parity_drift d({});
  after(d, 100, 1000, 1000);
  const auto begun = after(d, 200, 1000, 0);
  REQUIRE(begun.size() == 1);
  CHECK(begun[0].drifting);
  CHECK(begun[0].requests == 20);
  CHECK(begun[0].predicted == 20'000);
  CHECK(begun[0].reported == 0);
  CHECK(begun[0].error > 0.3);
  const auto ended = after(d, 200, 1000, 950);
  REQUIRE(ended.size() == 1);
  CHECK_FALSE(ended[0].drifting);
  CHECK(ended[0].requests == 20);
  CHECK(ended[0].error < 0.15);
  CHECK(after(d, 200, 1000, 1000).empty());
}

TEST_CASE("more reported than predicted is a drift as well; a few strange requests are none") {
  parity_drift d({});
  CHECK(after(d, 60, 0, 512).size() == 1);
  parity_drift patient({});
  for (int i = 0; i < 50; ++i) {
    CHECK(after(patient, 1, 1000, 0).empty());
    CHECK(after(patient, 30, 1000, 1000).empty());
  }
}

TEST_CASE("engines are told apart, and bounded: a new one is watched in the place of the longest unheard") {
  parity_drift d({0.3, 20, 0.95, 256, 2});
  after(d, 30, 1000, 1000, "e0");
  CHECK(after(d, 30, 1000, 0, "e1").size() == 1);
  CHECK(after(d, 30, 1000, 1000, "e0").empty());
  CHECK(d.evicted() == 0);
  CHECK(after(d, 30, 1000, 0, "e2").size() == 1);  // instead of e1
  CHECK(d.evicted() == 1);
  CHECK(after(d, 1, 1000, 1000, "e0").empty());
  CHECK(d.evicted() == 1);
  CHECK(after(d, 30, 1000, 0, "e1").size() == 1);  // forgotten, so told anew
  CHECK(d.evicted() == 2);
}
