#include "actors/simulator/fault_book.hpp"

#include <doctest/doctest.h>

using namespace infernex;
using namespace infernex::simulator;

namespace {

fault_rule rule_of(std::string_view body) {
  const auto outcome = parse_fault(body);
  REQUIRE(std::holds_alternative<fault_rule>(outcome));
  return std::get<fault_rule>(outcome);
}

std::string refused(std::string_view body) {
  const auto outcome = parse_fault(body);
  REQUIRE(std::holds_alternative<refusal>(outcome));
  return std::get<refusal>(outcome).param;
}

}  // namespace

TEST_CASE("a fault strikes as often as it was told to") {
  fault_book book;
  REQUIRE(book.arm(rule_of(R"({"fault":"error503","count":2})")));
  CHECK(book.strike_request()->kind == fault_kind::error503);
  CHECK(book.strike_request()->kind == fault_kind::error503);
  CHECK_FALSE(book.strike_request());
  CHECK(book.render() == R"({"faults":[{"fault":"error503","struck":2,"left":0}]})");
  book.clear();
  CHECK(book.render() == R"({"faults":[]})");
}

TEST_CASE("faults of transfers do not strike requests, nor the other way round") {
  fault_book book;
  book.arm(rule_of(R"({"fault":"transfer","count":1})"));
  book.arm(rule_of(R"({"fault":"die","when":"prefill","count":1,"down_ms":7})"));
  CHECK_FALSE(book.strike(fault_kind::drop_metaserver));
  const auto struck = book.strike_request();
  REQUIRE(struck);
  CHECK(struck->kind == fault_kind::die);
  CHECK(struck->when == fault_moment::prefill);
  CHECK(struck->down_ms == 7);
  CHECK(book.strike(fault_kind::transfer));
  CHECK_FALSE(book.strike(fault_kind::transfer));
}

TEST_CASE("chance follows from the seed") {
  const auto strikes = [](std::uint64_t seed) {
    fault_book book;
    auto rule = rule_of(R"({"fault":"hang","probability":0.1})");
    rule.seed = seed;
    book.arm(rule);
    std::vector<bool> struck;
    for (int i = 0; i < 1'000; ++i) struck.push_back(book.strike_request().has_value());
    return struck;
  };
  const auto one = strikes(1);
  CHECK(one == strikes(1));
  CHECK(one != strikes(2));
  const auto count = std::count(one.begin(), one.end(), true);
  CHECK(count > 60);
  CHECK(count < 140);
}

TEST_CASE("what is not a fault is refused by name, and there is a bound on how many") {
  CHECK(refused(R"({"fault":"explode"})") == "fault");
  CHECK(refused(R"({})") == "fault");
  CHECK(refused(R"({"fault":"die","when":"never"})") == "when");
  CHECK(refused(R"({"fault":"die","after":3})") == "after");
  CHECK(refused(R"({"fault":"die","probability":2})") == "probability");
  fault_book book;
  const auto once = rule_of(R"({"fault":"reset","count":1})");
  for (std::size_t i = 0; i < fault_book::most_rules; ++i) REQUIRE(book.arm(once));
  CHECK_FALSE(book.arm(once));
  CHECK(book.strike_request());
  CHECK(book.arm(once));  // in place of the one that is used up
}
