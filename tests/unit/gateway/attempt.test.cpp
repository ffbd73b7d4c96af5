#include "gateway/attempt.hpp"

#include <doctest/doctest.h>

using namespace infernex;
using namespace infernex::gateway;
using namespace std::chrono_literals;

namespace {

std::vector<candidate> ranked(std::initializer_list<const char*> names) {
  std::vector<candidate> out;
  for (const auto* n : names) out.push_back({n, std::string("http://") + n, 0});
  return out;
}

const clock_point start{1000s};

}  // namespace

TEST_CASE("back-off doubles up to its bound and ends with a success") {
  engine_backoff backoff(1s, 3s);
  CHECK_FALSE(backoff.out("e0", start));
  backoff.failed("e0", start);
  backoff.failed("e0", start + 10ms);  // the same failure, seen by another request
  CHECK(backoff.out("e0", start + 999ms));
  CHECK_FALSE(backoff.out("e0", start + 1s));
  CHECK_FALSE(backoff.out("e1", start));
  backoff.failed("e0", start + 1s);
  CHECK(backoff.out("e0", start + 2999ms));
  CHECK_FALSE(backoff.out("e0", start + 3s));
  backoff.failed("e0", start + 3s);
  CHECK(backoff.out("e0", start + 5999ms));
  CHECK_FALSE(backoff.out("e0", start + 6s));
  backoff.succeeded("e0");
  backoff.failed("e0", start + 7s);
  CHECK_FALSE(backoff.out("e0", start + 8s));
}

TEST_CASE("back-off forgets the entry that ends first when full") {
  engine_backoff backoff(1s, 3s, 2);
  backoff.failed("e0", start);
  backoff.failed("e1", start + 1ms);
  backoff.failed("e2", start + 2ms);
  CHECK_FALSE(backoff.out("e0", start + 3ms));
  CHECK(backoff.out("e1", start + 3ms));
  CHECK(backoff.out("e2", start + 3ms));
}

TEST_CASE("what is worth another engine") {
  for (auto e : {errc::unreachable, errc::connection_lost, errc::malformed_input}) CHECK(worth_retry(e));
  for (auto e : {errc::timed_out, errc::cancelled, errc::too_large, errc::invalid_request}) CHECK_FALSE(worth_retry(e));
  for (auto s : {502U, 503U, 504U}) CHECK(worth_retry_status(s));
  for (auto s : {200U, 400U, 404U, 429U, 500U}) CHECK_FALSE(worth_retry_status(s));
}

TEST_CASE("runners-up in order, then whom routing names, then the end") {
  engine_backoff backoff(1s, 3s);
  attempts tries(3);
  tries.offer(ranked({"e0", "e1"}));
  CHECK(tries.next(backoff, start)->instance == "e0");
  tries.failed("refused the connection");
  CHECK(tries.next(backoff, start)->instance == "e1");
  tries.failed("answered 503");
  CHECK_FALSE(tries.next(backoff, start).has_value());
  CHECK_FALSE(tries.exhausted());
  tries.offer(ranked({"e0", "e2", "e3"}));
  const auto third = tries.next(backoff, start);
  REQUIRE(third.has_value());
  CHECK(third->instance == "e2");
  CHECK(third->url == "http://e2");
  tries.failed("broke the connection");
  CHECK(tries.exhausted());
  CHECK_FALSE(tries.next(backoff, start).has_value());
  CHECK(tries.count() == 3);
  CHECK(tries.failures() == std::vector<std::string>{"e0", "e1", "e2"});
  CHECK(tries.story() == "e0 refused the connection; e1 answered 503; e2 broke the connection");
}

TEST_CASE("an engine in back-off comes last") {
  engine_backoff backoff(1s, 3s);
  backoff.failed("e0", start);
  attempts tries(3);
  tries.offer(ranked({"e0", "e1"}));
  CHECK(tries.next(backoff, start)->instance == "e1");
  CHECK(tries.next(backoff, start)->instance == "e0");
}

TEST_CASE("routing leaves out engines in back-off only while another is left") {
  engine_backoff backoff(1s, 3s);
  CHECK(exclusions({"e0"}, backoff, {"e0", "e1"}, start) == std::vector<std::string>{"e0"});
  backoff.failed("e1", start);
  CHECK(exclusions({}, backoff, {"e0", "e1"}, start) == std::vector<std::string>{"e1"});
  CHECK(exclusions({"e0"}, backoff, {"e0", "e1"}, start) == std::vector<std::string>{"e0"});
  CHECK(exclusions({}, backoff, {"e0", "e1"}, start + 1s).empty());
}
