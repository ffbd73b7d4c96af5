// The indexer's HTTP API over a real nats-server, with agents that exist on the bus only; and replicas.

#include <future>
#include <map>
#include <numeric>

#include <doctest/doctest.h>

#include "actors/engine/block_key.hpp"
#include "tests/component/indexer/fake_agent.hpp"
#include "tests/component/indexer/replica.hpp"
#include "tests/support/wait.hpp"

namespace infernex {
namespace {

namespace json = boost::json;
using namespace std::chrono_literals;
using test::call;
using test::connect;
using test::eventually;
using test::fake_agent;
using test::replica;

struct outside {
  test::nats_server server;
  metrics_registry metrics;
  std::unique_ptr<bus> messages = connect(server, metrics);
  ~outside() { messages->close(1s); }

  /// Blocks of `instance` by a match query on the bus; nothing if nobody answers.
  std::optional<std::uint32_t> ask(const std::string& model, const std::vector<std::uint64_t>& chain,
                                   const std::string& instance) {
    fb::KvMatchQueryT query;
    query.model = model;
    query.chains.push_back(std::make_unique<fb::KvChainT>());
    query.chains[0]->keys = chain;
    auto done = std::make_shared<std::promise<std::optional<std::uint32_t>>>();
    auto future = done->get_future();
    messages->request<fb::KvMatchReply>(messages->names().kv_match(model), encode(query), 2s,
                                        [done, instance](result<view<fb::KvMatchReply>>&& reply) {
                                          if (!reply) return done->set_value(std::nullopt);
                                          const auto all = std::unique_ptr<fb::KvMatchReplyT>((**reply).UnPack());
                                          std::uint32_t blocks = 0;
                                          for (const auto& o : all->matches.at(0)->overlaps)
                                            if (o->instance == instance) blocks = o->blocks;
                                          done->set_value(blocks);
                                        });
    if (future.wait_for(5s) != std::future_status::ready) return std::nullopt;
    return future.get();
  }
};

std::vector<std::uint64_t> range(std::uint64_t from, std::size_t count) {
  std::vector<std::uint64_t> keys(count);
  std::iota(keys.begin(), keys.end(), from);
  return keys;
}

std::vector<std::uint32_t> tokens(std::size_t count) {
  std::vector<std::uint32_t> ids(count);
  std::iota(ids.begin(), ids.end(), 7);
  return ids;
}

std::string list(const std::vector<std::uint32_t>& ids) { return json::serialize(json::value_from(ids)); }

TEST_CASE("a replica that joins late is asked only once it is exact; then either answers") {
  outside world;
  fake_agent agent(*world.messages, "m", "e0");
  const auto chain = range(1, 3'000);
  replica first(world.server, "first");
  REQUIRE(eventually([&] {
    agent.announce();
    return first.ready();
  }));
  // The first key comes alone: a delta that arrives shows that the subscription for them is there.
  std::uint64_t other = 1'000'000;
  REQUIRE(eventually([&] {
    agent.change({}, {other++});
    agent.announce();
    return world.ask("m", {other - 1}, "e0") == 1u;
  }));
  agent.change({}, chain);
  agent.change({}, range(10'000'000, 60'000));
  REQUIRE(eventually([&] { return world.ask("m", chain, "e0") == 3'000u; }));
  {
    replica second(world.server, "second");
    unsigned wrong = 0;
    unsigned asked = 0;
    auto next_announcement = std::chrono::steady_clock::now();
    REQUIRE(eventually([&] {
      // Until the agent is heard of, nothing could be exact.
      if (std::chrono::steady_clock::now() >= next_announcement) {
        agent.announce();
        next_announcement += 50ms;
      }
      ++asked;
      wrong += world.ask("m", chain, "e0") != 3'000u;
      return second.ready() && agent.snapshots() > 0;
    }));
    for (int i = 0; i < 20; ++i) wrong += world.ask("m", chain, "e0") != 3'000u;
    CHECK(asked > 0);
    CHECK(wrong == 0);
    CHECK(call(second.port, "GET", "/readyz").body.find("sources exact after") != std::string::npos);
    first.running->stop(2s);
    REQUIRE(eventually([&] { return world.ask("m", chain, "e0") == 3'000u; }));
  }
}

TEST_CASE("an engine that cannot be followed delays readiness for a stated time") {
  outside world;
  fake_agent agent(*world.messages, "m", "e0");
  agent.change({}, {1}, fake_agent::fate::lost);
  agent.refuse_snapshots();
  replica one(world.server, "one", {}, [](indexer::settings& how) { how.ready.patience = 1s; });
  bool was_waiting = false;
  REQUIRE(eventually([&] {
    agent.announce();
    was_waiting |= call(one.port, "GET", "/readyz").body.find("1 of 1 sources not exact") != std::string::npos;
    return one.ready();
  }));
  CHECK(was_waiting);
  CHECK(call(one.port, "GET", "/readyz").body == "ok: answering after 1000 ms with 1 of 1 sources not exact\n");
}

TEST_CASE("POST /match_sort answers by tokens and by keys, best first") {
  outside world;
  fake_agent first(*world.messages, "m", "e0");
  fake_agent second(*world.messages, "m", "e1");
  replica one(world.server, "one");
  const auto ids = tokens(64);
  const auto keys = engine::chain_keys({"m", "", "", 16}, ids, 99);
  REQUIRE(keys.size() == 4);
  REQUIRE(eventually([&] {
    first.announce();
    second.announce();
    return one.ready() && call(one.port, "POST", "/match_sort", R"({"model":"m","token_ids":[1]})").status == 200;
  }));
  first.change({}, {keys[0]});
  second.change({}, keys);
  first.announce();
  second.announce();
  json::value answer;
  REQUIRE(eventually([&] {
    const auto got = call(one.port, "POST", "/match_sort", R"({"model":"m","token_ids":)" + list(ids) + "}");
    if (got.status != 200) return false;
    answer = got.json();
    const auto& best = answer.at("instances").at(0);
    const auto& next = answer.at("instances").at(1);
    return best.at("exact") == true && best.at("instance") == "e1" && next.at("matched_tokens").to_number<int>() == 16;
  }));
  // The fourth block holds the last token, which an engine computes again.
  CHECK(answer.at("instances").at(0).at("matched_tokens").to_number<int>() == 48);
  CHECK(answer.at("instances").at(0).at("hit_rate").to_number<double>() == doctest::Approx(0.75));
  CHECK(answer.at("instances").at(0).at("url") == "http://127.0.0.1/e1");
  CHECK(answer.at("tokens_by") == "given");
  const auto by_keys =
      call(one.port, "POST", "/match_sort",
           R"({"model":"m","block_size":16,"top":1,"block_keys":)" + json::serialize(json::value_from(keys)) + "}");
  REQUIRE(by_keys.status == 200);
  CHECK(by_keys.json().at("instances").as_array().size() == 1);
  CHECK(by_keys.json().at("instances").at(0).at("blocks").to_number<int>() == 4);
  const auto several =
      call(one.port, "POST", "/match_sort",
           R"({"model":"m","block_size":16,"block_keys":[)" + json::serialize(json::value_from(keys)) + ",[12345]]}");
  REQUIRE(several.status == 200);
  CHECK(several.json().at("matches").at(0).at("instances").as_array().size() == 2);
  CHECK(several.json().at("matches").at(1).at("instances").as_array().empty());
  CHECK(several.json().at("coverage").as_array().size() == 2);
}

TEST_CASE("what the HTTP API does not take it refuses in OpenAI's error shape") {
  outside world;
  fake_agent agent(*world.messages, "m", "e0");
  replica one(world.server, "one", {}, [](indexer::settings& how) { how.max_body_bytes = 1 << 10; });
  REQUIRE(eventually([&] {
    agent.announce();
    return call(one.port, "POST", "/match_sort", R"({"model":"m","token_ids":[1]})").status == 200;
  }));
  const auto refused = [&](const std::string& method, const std::string& path, const std::string& body, int status) {
    const auto got = call(one.port, method, path, body);
    CHECK(got.status == status);
    CHECK_FALSE(got.json().at("error").at("message").as_string().empty());
    return got;
  };
  CHECK(refused("GET", "/match_sort", "", 405).head.find("Allow: POST") != std::string::npos);
  refused("POST", "/sources", "", 405);
  refused("POST", "/match_sort", "no json", 400);
  CHECK(refused("POST", "/match_sort", R"({"model":"m","token_ids":["x"]})", 400).json().at("error").at("param") ==
        "token_ids");
  CHECK(refused("POST", "/match_sort", R"({"model":"other","token_ids":[1]})", 404).json().at("error").at("code") ==
        "model_not_found");
  refused("POST", "/match_sort", std::string(2'000, ' '), 413);
  refused("POST", "/elsewhere", "{}", 404);
  // The announced engine has no endpoint that renders: nobody listens there.
  refused("POST", "/match_sort", R"({"model":"m","prompt":"hello"})", 503);
  CHECK(call(one.port, "GET", "/sources").json().at("models").at(0).at("instances").at(0).at("state") == "exact");
  CHECK(call(one.port, "GET", "/dump?model=m&instance=e0").body.find("\"complete\":true}") != std::string::npos);
  CHECK(refused("GET", "/dump?model=m&instance=other", "", 404).json().at("error").at("code") == "instance_not_found");
}

TEST_CASE("engines are registered, queried and unregistered by Conductor's names") {
  outside world;
  std::vector<discovery::engine_descriptor> followed;  // touched by the HTTP thread only, read between calls
  error answer_to_add;
  indexer::registrar engines;
  engines.add = [&](const discovery::engine_descriptor& e) {
    if (answer_to_add.code == errc::none) followed.push_back(e);
    return answer_to_add;
  };
  engines.remove = [&](const std::string& instance) {
    return std::erase_if(followed, [&](const auto& e) { return e.instance == instance; }) != 0;
  };
  replica one(world.server, "one", std::move(engines));
  const auto post = [&](const std::string& path, const std::string& body) {
    return call(one.port, "POST", path, body);
  };
  const std::string vllm =
      R"("endpoint":"tcp://127.0.0.1:5557","type":"vLLM","modelname":"m","tenant_id":"acme","block_size":16)";
  CHECK(post("/register", "{" + vllm + R"(,"instance_id":"a","dp_rank":0})").status == 200);
  CHECK(post("/register", "{" + vllm + R"(,"instance_id":"a","dp_rank":0})").status == 200);  // said twice
  CHECK(post("/register", "{" + vllm + R"(,"instance_id":"a","dp_rank":1})").status == 200);
  CHECK(post("/register", "{" + vllm + R"(,"replay_endpoint":"tcp://h:1","instance_id":"a","dp_rank":1})").status ==
        409);
  REQUIRE(followed.size() == 2);
  CHECK(followed[1].instance == "a-dp1");
  CHECK(followed[1].model == "m@tenant:acme");

  // The agents announce, and publish what the engines hold.
  const auto ids = tokens(64);
  const auto keys = engine::chain_keys({"m@tenant:acme", "", "", 16}, ids, 99);
  fake_agent first(*world.messages, "m@tenant:acme", "a-dp0");
  fake_agent second(*world.messages, "m@tenant:acme", "a-dp1");
  first.change({}, {keys[0]});
  second.change({}, keys);
  const auto query = R"({"model":"m","tenant_id":"acme","block_size":16,"token_ids":)" + list(ids) + "}";
  json::value found;
  CHECK(eventually([&] {
    first.announce();
    second.announce();
    const auto got = post("/query", query);
    if (got.status != 200) return false;
    found = got.json();
    return found ==
           json::parse(R"({"acme":{"a":{"longest_matched":64,"GPU":64,"DP":{"0":16,"1":64},"CPU":0,"DISK":0}}})");
  }));
  // Another tenant's keys are others, and its model is not this one.
  CHECK(post("/query", R"({"model":"m","block_size":16,"token_ids":)" + list(ids) + "}").status == 404);
  const auto hashes =
      R"({"model":"m","tenant_id":"acme","seq_hashes":)" + json::serialize(json::value_from(keys)) + "}";
  CHECK(post("/query_by_hash", hashes).json() == found);

  CHECK(post("/unregister", R"({"instance_id":"a","dp_rank":0})").json() ==
        json::parse(R"({"status":"unregistered successfully","removed_instances":["a|acme|0"]})"));
  CHECK(followed.size() == 1);
  // What was ended here may come back at once, although the page still shows it; what another follows may not.
  CHECK(post("/register", "{" + vllm + R"(,"instance_id":"a","dp_rank":0})").status == 200);
  CHECK(post("/unregister", R"({"instance_id":"a","dp_rank":0})").status == 200);
  fake_agent foreign(*world.messages, "m@tenant:acme", "x");
  CHECK(eventually([&] {
    foreign.announce();
    return call(one.port, "GET", "/sources").body.find("\"x\"") != std::string::npos;
  }));
  CHECK(post("/register", "{" + vllm + R"(,"instance_id":"x"})").json().at("error").at("code") == "already_registered");
  CHECK(post("/unregister", R"({"instance_id":"b"})").status == 404);
  CHECK(post("/unregister", R"({"instance_id":"a"})").json().at("removed_instances").as_array().size() == 1);
  CHECK(followed.empty());
  answer_to_add = {errc::overloaded, "at most 2"};
  CHECK(post("/register", "{" + vllm + R"(,"instance_id":"new"})").status == 429);
  answer_to_add = {errc::cancelled, "ending"};
  CHECK(post("/register", "{" + vllm + R"(,"instance_id":"new"})").status == 503);
}

TEST_CASE("engines are registered over the network only if that was allowed") {
  outside world;
  indexer::registrar engines;
  engines.add = [](const discovery::engine_descriptor&) { return error{}; };
  engines.remove = [](const std::string&) { return true; };
  const std::string body = R"({"endpoint":"tcp://127.0.0.1:5557","modelname":"m","instance_id":"a"})";
  for (const bool allowed : {false, true}) {
    replica one(world.server, "one", engines, [allowed](indexer::settings& how) {
      how.admin_address = "0.0.0.0";
      how.allow_register = allowed;
    });
    CHECK(call(one.port, "POST", "/register", body).status == (allowed ? 200 : 403));
  }
}

}  // namespace
}  // namespace infernex
