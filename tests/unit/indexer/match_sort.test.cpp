#include "actors/indexer/match_sort.hpp"

#include <boost/json.hpp>
#include <doctest/doctest.h>

#include "actors/engine/block_key.hpp"
#include "actors/indexer/prompt_call.hpp"
#include "tests/unit/indexer/reading.hpp"

namespace infernex::indexer {
namespace {

namespace json = boost::json;
using namespace std::chrono_literals;

std::string mistake(std::string_view body) { return mistake_in(body, read_match_question); }
match_question read(std::string_view body) { return read_right(body, read_match_question); }

engine_list one_model() {
  engine_list all;
  auto& model = all.models["m"];
  for (const auto* name : {"e0", "e1", "e2"}) {
    engine_entry e;
    e.instance = name;
    e.url = std::string("http://") + name;
    e.state = fb::EngineState::Ready;
    e.kv_health = fb::KvHealth::Live;
    e.block_size = 4;
    e.adapters = {"lora"};
    model.engines.push_back(e);
  }
  return all;
}

source_status status(std::string instance, bool exact = true) {
  source_status s;
  s.model = "m";
  s.instance = std::move(instance);
  s.exact = exact;
  return s;
}

TEST_CASE("a question is read in each of its forms") {
  auto q =
      read(R"({"model":"m","tenant_id":"acme","token_ids":[1,2,4294967295],"lora_name":"a","cache_salt":"s","top":2})");
  CHECK(q.by == match_question::form::tokens);
  CHECK(q.token_ids == std::vector<std::uint32_t>{1, 2, 4294967295});
  CHECK(q.index == "m@tenant:acme");
  CHECK(q.adapter == "a");
  CHECK(q.salt == "s");
  CHECK(q.top == 2);
  q = read(R"({"model":"m","block_size":16,"block_keys":["00000000000000ff","0xA",18446744073709551615]})");
  CHECK_FALSE(q.chains.several);
  CHECK(q.chains.lists == std::vector<std::vector<std::uint64_t>>{{255, 10, ~std::uint64_t{0}}});
  q = read(R"({"model":"m","block_size":16,"block_keys":[[1],[],[2,3]]})");
  CHECK(q.chains.several);
  CHECK(q.chains.lists == std::vector<std::vector<std::uint64_t>>{{1}, {}, {2, 3}});
  q = read(
      R"({"model":"m","messages":[{"role":"user","content":"x"}],"tools":[1],"top":1,"explain":true,"tenant":null})");
  CHECK(q.by == match_question::form::messages);
  CHECK(q.explain);
  CHECK(prompt_path(prompt_step::render, q) == "/v1/chat/completions/render");
  CHECK(json::parse(prompt_body(q)) ==
        json::parse(R"({"model":"m","messages":[{"role":"user","content":"x"}],"tools":[1]})"));
}

TEST_CASE("a wrong question is refused with the field at fault") {
  CHECK(mistake("{").find("not JSON") != std::string::npos);
  CHECK(mistake("[]").find("JSON object") != std::string::npos);
  CHECK(mistake(R"({"token_ids":[1]})") == "model: is required");
  CHECK(mistake(R"({"model":7,"token_ids":[1]})") == "model: text is wanted");
  CHECK(mistake(R"({"model":"m"})").starts_with("token_ids: exactly one of"));
  CHECK(mistake(R"({"model":"m","prompt":"x","token_ids":[1]})").starts_with("token_ids: exactly one of"));
  CHECK(mistake(R"({"model":"m","token_ids":[1,-2]})") == "token_ids: entry 1 is not a token id");
  CHECK(mistake(R"({"model":"m","token_ids":[4294967296]})") == "token_ids: entry 0 is not a token id");
  CHECK(mistake(R"({"model":"m","token_ids":[1.5]})") == "token_ids: entry 0 is not a token id");
  CHECK(mistake(R"({"model":"m","token_ids":"1"})") == "token_ids: a list of token ids is wanted");
  CHECK(mistake(R"({"model":"m","block_size":4,"block_keys":["xyz"]})").starts_with("block_keys: entry 0"));
  CHECK(mistake(R"({"model":"m","block_size":4,"block_keys":[[1],2]})").starts_with("block_keys: either every"));
  CHECK(mistake(R"({"model":"m","block_size":0,"token_ids":[]})").starts_with("block_size: a number from 1"));
  CHECK(mistake(R"({"model":"m","top":0,"token_ids":[]})").starts_with("top: a number"));
  CHECK(mistake(R"({"model":"m@tenant:x","token_ids":[]})").starts_with("model, tenant:"));
  CHECK(mistake(R"({"model":"m","token_ids":)" + std::string(40, '[') + std::string(40, ']') + "}").find("not JSON") !=
        std::string::npos);
}

TEST_CASE("names are settled by what engines have announced") {
  const auto engines = one_model();
  auto q = read(R"({"model":"lora","token_ids":[1],"block_size":64})");
  REQUIRE_FALSE(settle_names(q, engines));
  CHECK(q.model == "m");
  CHECK(q.adapter == "lora");
  CHECK(q.block_size == 4);
  q = read(R"({"model":"lora","tenant":"acme","token_ids":[1]})");
  CHECK(settle_names(q, engines)->status == 404);
  q = read(R"({"model":"m","block_keys":[1],"block_size":64})");
  REQUIRE_FALSE(settle_names(q, engines));
  CHECK(q.block_size == 64);
  q = read(R"({"model":"m","block_keys":[1]})");
  REQUIRE_FALSE(settle_names(q, engines));
  CHECK(q.block_size == 4);
  q = read(R"({"model":"unknown","token_ids":[1]})");
  CHECK(settle_names(q, engines)->code == "model_not_found");
  auto unsure = engines;
  for (auto& e : unsure.models["m"].engines) e.block_size.reset();
  q = read(R"({"model":"m","token_ids":[1]})");
  CHECK(settle_names(q, unsure)->status == 503);
  q = read(R"({"model":"m","token_ids":[1],"block_size":8})");
  CHECK_FALSE(settle_names(q, unsure));
  CHECK(q.block_size == 8);
}

TEST_CASE("the chain leaves out the block of the last token, unless every block is asked for") {
  auto q = read(R"({"model":"m","token_ids":[1,2,3,4,5,6,7,8],"block_size":4,"lora_name":"a","cache_salt":"s"})");
  const auto all = engine::chain_keys({"m", "a", "s", 4}, q.token_ids, 9);
  REQUIRE(all.size() == 2);
  CHECK(keys_of(q, q.token_ids, true) == all);
  CHECK(keys_of(q, q.token_ids, false) == std::vector<block_key>{all[0]});
}

TEST_CASE("instances are sorted best first: blocks, then device, then host, then exact, then name") {
  const auto engines = one_model();
  std::vector<source_status> sources{status("e0", false), status("e1"), status("e2"), status("e3")};
  const std::vector<match> found{{"e0", 3, 3, 3}, {"e2", 3, 1, 2}, {"e4", 3, 1, 1}, {"e1", 3, 3, 3}};
  const auto rows = sort_matches(found, engines.find("m"), sources, std::nullopt);
  std::vector<std::string_view> order;
  for (const auto& row : rows) order.push_back(row.instance);
  CHECK(order == std::vector<std::string_view>{"e1", "e0", "e2", "e4", "e3"});
  CHECK(rows[3].source == nullptr);
  CHECK(rows[4].blocks == 0);
  CHECK_FALSE(rows[4].exact());  // nobody has announced it
  CHECK(rows[0].exact());
  CHECK(rows[0].engine->url == "http://e1");
  CHECK(sort_matches(found, engines.find("m"), sources, 2).size() == 2);
}

TEST_CASE("the answer counts tokens by tier, and explains what is missing") {
  const auto engines = one_model();
  const auto now = time_point{} + 10s;
  std::vector<source_status> sources{status("e0"), status("e1"), status("e2", false)};
  for (auto& s : sources) s.last_heard = now - 40ms;
  auto q = read(R"({"model":"m","token_ids":[1,2,3,4,5,6,7,8,9,10],"explain":true})");
  REQUIRE_FALSE(settle_names(q, engines));
  const auto chain = keys_of(q, q.token_ids, false);
  const match_subject about{q, q.token_ids.size(), "given", chain};
  const std::vector<match> found{{"e0", 2, 1, 1}, {"e1", 1, 0, 1}};
  const auto answer =
      json::parse(render_match(about, sort_matches(found, engines.find("m"), sources, std::nullopt), now));
  CHECK(answer.at("prompt_tokens").to_number<int>() == 10);
  CHECK(answer.at("blocks").to_number<int>() == 2);
  CHECK(answer.at("block_keys").as_array().size() == 2);
  const auto& best = answer.at("instances").at(0);
  CHECK(best.at("instance") == "e0");
  CHECK(best.at("url") == "http://e0");
  CHECK(best.at("matched_tokens").to_number<int>() == 8);
  CHECK(best.at("hit_rate").to_number<double>() == doctest::Approx(0.8));
  CHECK(best.at("device_tokens").to_number<int>() == 4);
  CHECK(best.at("host_tokens").to_number<int>() == 0);
  CHECK(best.at("disk_tokens").to_number<int>() == 4);
  CHECK(best.at("age_ms").to_number<int>() == 40);
  CHECK(best.at("why_no_more") == "the last 2 tokens fill no block");
  const auto& second = answer.at("instances").at(1);
  CHECK(second.at("host_tokens").to_number<int>() == 4);
  CHECK(std::string(second.at("why_no_more").as_string()).starts_with("block 1 (key "));
  const auto& none = answer.at("instances").at(2);
  CHECK(none.at("exact") == false);
  CHECK(std::string(none.at("why_no_more").as_string()).ends_with("not known to be exact for it"));
}

TEST_CASE("several chains are answered in their order, with the coverage") {
  const auto engines = one_model();
  std::vector<source_status> sources{status("e0"), status("e1")};
  auto q = read(R"({"model":"m","block_size":4,"block_keys":[[1,2],[3]]})");
  const auto* model = engines.find("m");
  const std::vector<match> first{{"e1", 2, 2, 2}};
  const std::vector<std::vector<match_row>> matches{best_matches(first, model, sources, 9),
                                                    best_matches({}, model, sources, 9)};
  const auto answer = json::parse(render_matches(q, matches, model, sources, time_point{}));
  REQUIRE(answer.at("matches").as_array().size() == 2);
  CHECK(answer.at("matches").at(0).at("instances").as_array().size() == 1);
  CHECK(answer.at("matches").at(0).at("instances").at(0).at("blocks").to_number<int>() == 2);
  CHECK(answer.at("matches").at(1).at("instances").as_array().empty());
  CHECK(answer.at("coverage").as_array().size() == 2);
  CHECK(answer.at("coverage").at(1).at("url") == "http://e1");
  CHECK(answer.at("coverage").at(1).at("exact") == true);
}

TEST_CASE("of several chains each has its best only, and all together a bounded number of rows") {
  const auto engines = one_model();
  const std::vector<source_status> sources{status("e0"), status("e1"), status("e2")};
  const std::vector<match> found{{"e0", 0, 0, 0}, {"e1", 2, 2, 2}, {"e2", 5, 9, 1}, {"unknown", 4, 4, 4}};
  const auto rows = best_matches(found, engines.find("m"), sources, 9);
  REQUIRE(rows.size() == 2);
  CHECK(rows[0].instance == "e2");
  CHECK(rows[0].device_blocks == 5);
  CHECK(rows[0].host_blocks == 5);
  CHECK(rows[0].source == &sources[2]);
  CHECK(rows[1].engine == engines.find("m")->find("e1"));
  CHECK(best_matches(found, engines.find("m"), sources, 1).size() == 1);
  CHECK(best_matches(found, nullptr, sources, 9)[0].engine == nullptr);
  CHECK(rows_of_each(1, std::nullopt) == 8'192);
  CHECK(rows_of_each(1, 3) == 3);
  CHECK(rows_of_each(max_chains, std::nullopt) == 2);
  CHECK(rows_of_each(max_chains, 100) == 2);
  CHECK(rows_of_each(100'000, std::nullopt) == 1);
}

TEST_CASE("a block that is not shown may be there, where the agent does not know all") {
  auto engines = one_model();
  const std::vector<source_status> sources{status("e0")};
  auto q = read(R"({"model":"m","block_size":4,"block_keys":[1]})");
  const match_subject about{q, std::nullopt, "keys", q.chains.lists.at(0)};
  const auto why = [&](fb::KvHealth health) {
    engines.models["m"].engines[0].kv_health = health;
    return why_no_more(sort_matches({}, engines.find("m"), sources, 1).at(0), about);
  };
  CHECK(why(fb::KvHealth::Live).ends_with("is not in its cache"));
  CHECK(why(fb::KvHealth::Partial).ends_with("not known to be in its cache: its agent has lost events of it"));
  CHECK(why(fb::KvHealth::Replaying).ends_with("its agent is still replaying its events"));
  CHECK(why(fb::KvHealth::Absent) == "it publishes no KV events");
}

TEST_CASE("an engine's answer is tokens, a refusal, or no help") {
  using verdict = engine::token_verdict;
  CHECK(read_prompt_answer(200, R"({"token_ids":[1,2]})").ids == std::vector<std::uint32_t>{1, 2});
  CHECK(read_prompt_answer(200, R"([{"token_ids":[3]},{"token_ids":[4]}])").ids == std::vector<std::uint32_t>{3});
  CHECK(read_prompt_answer(200, R"({"count":1,"tokens":[5]})").ids == std::vector<std::uint32_t>{5});
  for (const auto* bad : {"{}", "[]", "5", "{\"token_ids\":[-1]}", "{\"token_ids\":[1.5]}", "oops"})
    CHECK(read_prompt_answer(200, bad).verdict == verdict::failed);
  for (const auto status : {404u, 405u, 501u}) CHECK(read_prompt_answer(status, "{}").verdict == verdict::absent);
  for (const auto status : {408u, 429u, 500u, 503u}) CHECK(read_prompt_answer(status, "{}").verdict == verdict::failed);
  // Our caller's credentials, but the engine's affair: another may take them.
  for (const auto status : {401u, 403u}) CHECK(read_prompt_answer(status, "{}").verdict == verdict::denied);
  CHECK(read_prompt_answer(422, "{}").verdict == verdict::refused);
  const auto refused = read_prompt_answer(400, R"({"error":{"message":"too long"}})");
  CHECK(refused.verdict == verdict::refused);
  CHECK(refused.message == "too long");
}

}  // namespace
}  // namespace infernex::indexer
