#include "actors/router/kvmanager.hpp"

#include <boost/json.hpp>
#include <doctest/doctest.h>

namespace infernex::router {
namespace {

namespace json = boost::json;

fb::KvMatchQueryT question_of(const std::vector<std::vector<std::uint64_t>>& chains) {
  fb::KvMatchQueryT question;
  question.model = "Qwen/\"Q\"";
  for (const auto& keys : chains) {
    question.chains.push_back(std::make_unique<fb::KvChainT>());
    question.chains.back()->keys = keys;
  }
  return question;
}

errc problem_of(unsigned status, std::string_view body, std::size_t chains = 1) {
  const auto answer = read_kvmanager_answer(status, body, "m", chains);
  return answer ? errc::none : answer.failure().code;
}

TEST_CASE("the question carries every chain, its keys as hex digits") {
  CHECK(json::parse(kvmanager_question(question_of({{255, ~std::uint64_t{0}}, {}, {1}}))) ==
        json::parse(R"({"model":"Qwen/\"Q\"","block_keys":[["00000000000000ff","ffffffffffffffff"],[],
                        ["0000000000000001"]]})"));
  CHECK(json::parse(kvmanager_question(question_of({}))).at("block_keys").as_array().empty());
}

TEST_CASE("the older routers' time-out of a second does not outlast the gateway's patience") {
  kvmanager_settings how;
  CHECK(wait_of(how) == std::chrono::milliseconds(100));
  how.timeout = std::chrono::milliseconds(40);
  CHECK(wait_of(how) == how.timeout);
  how.timeout = std::chrono::seconds(2);
  how.max_wait = std::chrono::seconds(1);
  CHECK(wait_of(how) == how.max_wait);
}

TEST_CASE("the answer reads as an indexer's on the bus") {
  const auto answer = read_kvmanager_answer(200, R"({"model":"m","matches":[{"instances":[
      {"instance":"e0","blocks":5,"device_blocks":2,"host_blocks":3,"url":null}]},{"instances":[]}],
      "coverage":[{"instance":"e0","exact":true,"sequence":18446744073709551615,"keys":7,"age_ms":4}]})",
                                            "m", 2);
  REQUIRE(answer);
  const auto& reply = **answer;
  CHECK(text(reply.model()) == "m");
  REQUIRE(reply.matches()->size() == 2);
  const auto* overlap = reply.matches()->Get(0)->overlaps()->Get(0);
  CHECK(text(overlap->instance()) == "e0");
  CHECK(overlap->blocks() == 5);
  CHECK(overlap->device_blocks() == 2u);
  CHECK(overlap->host_blocks() == 3u);
  CHECK_FALSE(reply.matches()->Get(1)->overlaps());  // as with an indexer's: an empty list is left out
  CHECK(reply.coverage()->Get(0)->exact());
  CHECK(reply.coverage()->Get(0)->sequence() == ~std::uint64_t{0});
}

TEST_CASE("what is no answer is an error that says what kind") {
  CHECK(problem_of(404, "{}") == errc::not_found);
  CHECK(problem_of(503, "{}") == errc::overloaded);
  CHECK(problem_of(429, "{}") == errc::overloaded);
  CHECK(problem_of(500, "{}") == errc::malformed_input);
  for (const auto* bad : {"", "{", "[]", "{}", R"({"matches":[],"coverage":[]})", R"({"matches":[{}],"coverage":[]})",
                          R"({"matches":[{"instances":[{"instance":"e","blocks":-1}]}],"coverage":[]})",
                          R"({"matches":[{"instances":[]}],"coverage":[{"instance":5}]})"})
    CHECK(problem_of(200, bad) == errc::malformed_input);
  CHECK(problem_of(200, R"({"matches":[{"instances":[]}],"coverage":[]})") == errc::none);
}

TEST_CASE("the address is put together from its parts") {
  CHECK(target_of({"http://10.96.0.7/", 8080, "/match_sort"}) == "http://10.96.0.7:8080/match_sort");
  CHECK(target_of({"cache-indexer-service", 28080, "/v1/match"}) == "http://cache-indexer-service:28080/v1/match");
  CHECK(find_mistake({"[::1]"}).key.empty());
  for (const auto* bad : {"", "http://", "https://h", "h:80", "h/path"}) CHECK(find_mistake({bad}).key == "url");
  CHECK(find_mistake({"h", 80, "match"}).key == "matchPath");
}

}  // namespace
}  // namespace infernex::router
