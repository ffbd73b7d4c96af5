// The layer-wise protocol, where a request has several prompts, or its name is not its own.

#include <doctest/doctest.h>

#include "actors/runtime/http/client.hpp"
#include "actors/runtime/http/server.hpp"
#include "actors/runtime/http/waiter.hpp"
#include "tests/component/simulator/pd_fixture.hpp"

using namespace infernex;
using namespace infernex::simulator;
using namespace infernex::test;

namespace {

constexpr auto completions_path = "/v1/completions";

json::object two_prompts() {
  return {{"prompt", json::array{json::string(std::string(300, 'k') + " and so on"),
                                 json::string(std::string(200, 'm') + " and on")}},
          {"max_tokens", 12}};
}

std::vector<std::string> texts(const reply& answer) {
  INFO(answer.body);
  REQUIRE(answer.status == 200);
  std::vector<std::string> all;
  const auto parsed = answer.parsed();
  for (const auto& choice : parsed.at("choices").as_array()) all.push_back(text_of(choice.at("text")));
  return all;
}

/// Sends one prefill once it has been asked by `children` calls, and then answers them all.
class batching_metaserver {
 public:
  batching_metaserver(const engine_fixture& prefill, const char* path, json::object body, std::size_t children)
      : prefill_{"127.0.0.1", prefill.engine->port()}, path_(path), body_(std::move(body)), children_(children) {
    auto listening = http::server::listen(
        threads_, {}, [this](http::worker& on, http::request& in, http::responder& out) { return serve(on, in, out); });
    REQUIRE(listening.ok());
    server_ = *std::move(listening);
  }
  json::object params() const {
    const auto url = "http://127.0.0.1:" + std::to_string(server_->port()) + "/v1/metaserver";
    return {{"do_remote_decode", false}, {"do_remote_prefill", true}, {"metaserver", json::string(url)}};
  }

  /// Read after the decode engine has answered.
  json::object asked;

 private:
  http::task<void> serve(http::worker& on, http::request& in, http::responder& out) {
    auto child = json::parse(in.body).as_object();
    const std::string id(child.at("request_id").as_string());
    asked[id] = child;
    if (asked.size() < children_) {
      http::waiter pause(on.context());
      while (!over_ && !out.client_gone())
        co_await pause.wait(std::chrono::steady_clock::now() + std::chrono::milliseconds(5));
    } else {
      auto base = asked.begin()->value().as_object();
      base["batch_kv_transfer_params"] = asked;
      const auto body = json::serialize(prefill_of(body_, base));
      const http::outgoing what{.method = "POST", .target = path_, .headers = {}, .body = body};
      const http::call_options options;
      const auto answer = co_await on.upstream().fetch(prefill_, what, options);
      good_ = answer && answer->status == 200;
      over_ = true;
    }
    co_await out.send(good_ ? 200 : 502, "application/json", "{}");
  }

  const http::origin prefill_;
  const std::string path_;
  const json::object body_;
  const std::size_t children_;
  bool over_ = false;
  bool good_ = false;
  http::io_threads threads_{1};
  std::unique_ptr<http::server> server_;
};

}  // namespace

TEST_CASE("layer-wise: each of several prompts is asked for by a name of its own, and one prefill serves them all") {
  const engine_fixture one;
  const auto expected = texts(one.post(completions_path, two_prompts()));
  const pd_fixture pair(transfer_protocol::ascend_layerwise);
  batching_metaserver meta(pair.prefill, completions_path, two_prompts(), 2);
  const auto decoded = pair.decode.post(completions_path, with_transfer(two_prompts(), meta.params()), "abc");
  CHECK(texts(decoded) == expected);
  REQUIRE(meta.asked.size() == 2);
  CHECK(meta.asked.contains("cmpl-abc-0"));
  CHECK(meta.asked.contains("cmpl-abc-1"));
  // The prompts came whole blocks from elsewhere.
  CHECK(cached_tokens(decoded) > 0);
  CHECK(becomes_idle(pair.prefill));
  CHECK(becomes_idle(pair.decode));
}

TEST_CASE("sglang: a room for each of several prompts") {
  const engine_fixture one;
  const auto expected = texts(one.post(completions_path, two_prompts()));
  const pd_fixture pair(transfer_protocol::sglang);
  auto body = two_prompts();
  body["bootstrap_host"] = json::array{"127.0.0.1", "127.0.0.1"};
  body["bootstrap_port"] = json::array{pair.prefill.engine->kv_port(), pair.prefill.engine->kv_port()};
  body["bootstrap_room"] = json::array{5, 6};
  auto prefilled = std::async(std::launch::async, [&] { return pair.prefill.post(completions_path, body).status; });
  const auto decoded = pair.decode.post(completions_path, body);
  CHECK(texts(decoded) == expected);
  CHECK(cached_tokens(decoded) > 0);
  CHECK(prefilled.get() == 200);
  CHECK(becomes_idle(pair.prefill));
  CHECK(becomes_idle(pair.decode));
}

TEST_CASE("layer-wise: where one of the prompts cannot be had, all of the request fails, and nothing is left") {
  auto takes = pd_fixture::values_of(transfer_protocol::ascend_layerwise, transfer_role::decode);
  takes.kv_transfer.timeout = std::chrono::milliseconds(200);
  const pd_fixture pair(pd_fixture::values_of(transfer_protocol::ascend_layerwise, transfer_role::prefill), takes);
  // One that waits for a third child that never comes.
  batching_metaserver meta(pair.prefill, completions_path, two_prompts(), 3);
  CHECK(pair.decode.post(completions_path, with_transfer(two_prompts(), meta.params())).status == 500);
  CHECK(becomes_idle(pair.decode));
}

TEST_CASE("layer-wise: two requests under one id wait each for their own KV") {
  const pd_fixture pair(transfer_protocol::ascend_layerwise);
  const auto body = long_chat(5);
  const auto gone = json::object{{"do_remote_prefill", true}, {"metaserver", "http://127.0.0.1:1/v1/metaserver"}};
  arm(pair.decode, {{"fault", "drop_metaserver"}, {"count", 2}});
  auto first = post_later(pair.decode, with_transfer(body, gone), "abc");
  auto second = post_later(pair.decode, with_transfer(body, gone), "abc");
  CHECK(eventually([&] { return state_of(pair.decode).at("taking").to_number<int>() == 2; }));
  // The KV comes for one of them, then for the other.
  const auto engine_id = state_of(pair.decode).at("engine_id");
  const auto push = [&] {
    const json::object what{{"key", "chatcmpl-abc"}, {"engine_id", engine_id}};
    return http_call(pair.decode.engine->kv_port(), "POST", "/sim/kv/push", json::serialize(what)).finish().status;
  };
  for (int i = 0; i < 2; ++i) CHECK(push() == 200);
  CHECK(push() == 404);
  CHECK(said(first.get()) == said(second.get()));
  CHECK(becomes_idle(pair.decode));
}
