#include "actors/router/recent_keys.hpp"

#include <algorithm>
#include <list>
#include <random>

#include <doctest/doctest.h>

namespace infernex::router {
namespace {

using namespace std::chrono_literals;
using time_point = recent_keys::time_point;

/// The same by the plainest means.
struct model {
  std::list<std::pair<std::uint64_t, time_point>> keys;  // oldest first
  auto find(std::uint64_t k) {
    return std::find_if(keys.begin(), keys.end(), [k](const auto& e) { return e.first == k; });
  }
};

TEST_CASE("random touches, removals and growth: the same as a plain list") {
  std::mt19937_64 random(11);
  recent_keys all;
  model expected;
  time_point now{1000s};
  for (int step = 0; step < 20'000; ++step) {
    // Few distinct keys, some of them alike in their low bits, so that chains of the table collide and wrap.
    const auto k = (random() % 300) << (random() % 2 * 32);
    now += std::chrono::milliseconds(random() % 2);
    const auto known = expected.find(k);
    switch (random() % 4) {
      case 0:
        if (all.size() != 0) {
          CHECK(all.oldest() == expected.keys.front().second);
          CHECK(all.pop_oldest() == expected.keys.front().first);
          expected.keys.pop_front();
        }
        break;
      case 1: {
        const bool there = known != expected.keys.end();
        if (there && random() % 2) {
          CHECK_FALSE(all.erase(k, known->second + 1s));
          break;
        }
        CHECK(all.erase(k, there ? known->second : now) == there);
        if (there) expected.keys.erase(known);
        break;
      }
      default:
        if (known == expected.keys.end() && all.size() == all.capacity())
          all.resize(std::max(recent_keys::least_capacity, 2 * all.capacity()));
        CHECK(all.touch(k, now) == (known != expected.keys.end()));
        if (known != expected.keys.end()) expected.keys.erase(known);
        expected.keys.emplace_back(k, now);
    }
    REQUIRE(all.size() == expected.keys.size());
    CHECK(all.contains(k) == (expected.find(k) != expected.keys.end()));
  }
  while (all.size() != 0) {
    CHECK(all.pop_oldest() == expected.keys.front().first);
    expected.keys.pop_front();
  }
  all.resize(0);
  CHECK(all.capacity() == 0);
  CHECK_FALSE(all.contains(1));
}

}  // namespace
}  // namespace infernex::router
