#include "gateway/presence_list.hpp"

#include <map>

#include <doctest/doctest.h>

using namespace infernex::gateway;
using namespace std::chrono_literals;

namespace {
using names = std::vector<std::string>;
constexpr presence_list::clock_point start{1h};
}  // namespace

TEST_CASE("routers come with an announcement and go with their leave or with silence") {
  presence_list list;
  CHECK(list.on_announce("b", {}, 1, start));
  CHECK(list.on_announce("a", {}, 1, start));
  CHECK_FALSE(list.on_announce("a", {}, 1, start + 1s));
  CHECK(list.names() == names{"a", "b"});
  CHECK_FALSE(list.expire(start + 3'500ms));
  CHECK(list.expire(start + 3'501ms));
  CHECK(list.names() == names{"a"});
  CHECK(list.on_leave("a", 1));
  CHECK(list.names().empty());
  CHECK_FALSE(list.on_leave("a", 1));
}

TEST_CASE("the farewell of an earlier life does not end the present one") {
  presence_list list;
  CHECK(list.on_announce("a", {}, 2, start));
  CHECK_FALSE(list.on_leave("a", 1));
  CHECK(list.names() == names{"a"});
}

TEST_CASE("the list of routers is bounded, and nameless ones are not taken up") {
  presence_list list({1s, 2});
  CHECK_FALSE(list.on_announce("", {}, 1, start));
  CHECK(list.on_announce("a", {}, 1, start));
  CHECK(list.on_announce("b", {}, 1, start));
  CHECK_FALSE(list.on_announce("c", {}, 1, start));
  CHECK(list.refused() == 1);
  CHECK(list.names() == names{"a", "b"});
}

TEST_CASE("a model has one router; when that goes only its models move, and models spread") {
  const names three{"r0", "r1", "r2"};
  std::map<std::string, int> models;
  int moved = 0;
  for (int i = 0; i < 3'000; ++i) {
    const auto model = "model-" + std::to_string(i);
    const auto* chosen = router_for(three, model, {});
    REQUIRE(chosen);
    ++models[*chosen];
    CHECK(router_for(three, model, {}) == chosen);
    const auto* after = router_for(three, model, "r1");
    REQUIRE(after);
    CHECK(*after != "r1");
    if (*chosen != "r1") {
      CHECK(after == chosen);
    } else {
      ++moved;
    }
  }
  CHECK(moved == models["r1"]);
  for (const auto& router : three) CHECK(models[router] > 900);
}

TEST_CASE("nobody is left when the only router is the one that failed") {
  CHECK(router_for({}, "m", {}) == nullptr);
  CHECK(router_for(names{"r0"}, "m", "r0") == nullptr);
}

TEST_CASE("what is to be known of one may change") {
  presence_list list;
  CHECK(list.on_announce("g", "http://a", 1, start));
  CHECK_FALSE(list.on_announce("g", "http://a", 1, start + 1s));
  CHECK(list.on_announce("g", "http://b", 2, start + 2s));
  CHECK_FALSE(list.on_announce("g", "http://a", 1, start + 3s));
  CHECK(list.words().at("g") == "http://b");
  CHECK(list.size() == 1);
}
