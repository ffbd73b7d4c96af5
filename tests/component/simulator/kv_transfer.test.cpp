#include "actors/runtime/http/client.hpp"
#include "actors/runtime/http/server.hpp"
#include "tests/component/simulator/pd_fixture.hpp"

using namespace infernex;
using namespace infernex::test;
using simulator::transfer_protocol;
using simulator::transfer_role;

namespace {

const json::object ask_prefill{{"do_remote_decode", true},    {"do_remote_prefill", false},
                               {"remote_engine_id", nullptr}, {"remote_block_ids", nullptr},
                               {"remote_host", nullptr},      {"remote_port", nullptr}};

/// The answer of one engine that does both, of the same history.
struct expected {
  std::string text;
  int prompt_tokens = 0;
  int first_cached = 0;
  int second_cached = 0;
};
expected aggregated(const json::object& body) {
  const engine_fixture sim;
  const auto first = sim.post(chat_path, body);
  const auto second = sim.post(chat_path, body);
  return {said(first), first.parsed().at("usage").at("prompt_tokens").to_number<int>(), cached_tokens(first),
          cached_tokens(second)};
}

json::object mooncake_take(const pd_fixture& pair, std::string_view engine_id, std::string_view transfer_id) {
  return {{"do_remote_decode", false},
          {"do_remote_prefill", true},
          {"remote_bootstrap_addr", "http://127.0.0.1:" + std::to_string(pair.prefill.engine->kv_port())},
          {"remote_engine_id", json::string(engine_id)},
          {"transfer_id", json::string(transfer_id)}};
}

json::object mooncake_give(std::string_view transfer_id) {
  return {{"do_remote_decode", true}, {"do_remote_prefill", false}, {"transfer_id", json::string(transfer_id)}};
}

json::value query(const pd_fixture& pair) {
  return http_call(pair.prefill.engine->kv_port(), "GET", "/query").finish().parsed();
}

/// Does what a layer-wise proxy's metaserver does: sends the client's body to the prefill engine with the decode
/// engine's parameters.
class metaserver {
 public:
  metaserver(const engine_fixture& prefill, json::object body)
      : prefill_{"127.0.0.1", prefill.engine->port()}, body_(std::move(body)) {
    auto listening = http::server::listen(
        threads_, {}, [this](http::worker& on, http::request& in, http::responder& out) { return serve(on, in, out); });
    REQUIRE(listening.ok());
    server_ = *std::move(listening);
  }
  std::string url() const { return "http://127.0.0.1:" + std::to_string(server_->port()) + "/v1/metaserver"; }

  /// What was asked last. Read after the decode engine has answered.
  json::object asked;
  int refusals = 0;
  std::atomic<int> calls{0};

 private:
  http::task<void> serve(http::worker& on, http::request& in, http::responder& out) {
    if (++calls <= refusals) {
      co_await out.send(502, "application/json", "{}");
      co_return;
    }
    asked = json::parse(in.body).as_object();
    const auto body = json::serialize(prefill_of(body_, asked));
    const http::outgoing what{.method = "POST", .target = chat_path, .headers = {}, .body = body};
    const http::call_options options;
    const auto answer = co_await on.upstream().fetch(prefill_, what, options);
    const bool good = answer && answer->status == 200;
    co_await out.send(good ? 200 : 502, "application/json", good ? R"({"status":"ok"})" : "{}");
  }

  const http::origin prefill_;
  const json::object body_;
  http::io_threads threads_{1};
  std::unique_ptr<http::server> server_;
};

}  // namespace

TEST_CASE("nixl and ascend: prefill first, its parameters to decode, text and usage of one engine") {
  const auto body = long_chat(30);
  const auto one = aggregated(body);
  for (const auto protocol : {transfer_protocol::nixl, transfer_protocol::ascend}) {
    const pd_fixture pair(protocol);
    for (const bool second : {false, true}) {
      const auto prefilled = pair.prefill.post(chat_path, prefill_of(body, ask_prefill), "req-7");
      REQUIRE(prefilled.status == 200);
      const auto params = prefilled.parsed().at("kv_transfer_params").as_object();
      CHECK(params.at("do_remote_prefill") == true);
      CHECK(text_of(params.at("remote_request_id")).starts_with("chatcmpl-req-7"));
      CHECK(params.at("remote_port").to_number<int>() == pair.prefill.engine->kv_port());
      CHECK(params.at("remote_engine_id") == state_of(pair.prefill).at("engine_id"));
      CHECK(cached_tokens(prefilled) == (second ? one.second_cached : one.first_cached));
      const int blocks = one.prompt_tokens / 16;
      CHECK(state_of(pair.prefill).at("kv_blocks").at("used").to_number<int>() == blocks);
      CHECK(pair.prefill.metric("vllm:kv_cache_usage_perc").value_or(0) > 0);

      const auto decoded = pair.decode.post(chat_path, with_transfer(body, params), "req-7");
      CHECK(said(decoded) == one.text);
      const auto usage = decoded.parsed().at("usage");
      CHECK(usage.at("prompt_tokens").to_number<int>() == one.prompt_tokens);
      CHECK(usage.at("completion_tokens").to_number<int>() == 30);
      // As vLLM's: what came from elsewhere counts as cached here, so the client's figure is the prefill's.
      CHECK(cached_tokens(decoded) == (one.prompt_tokens - 1) / 16 * 16);
      CHECK(becomes_idle(pair.prefill));
      CHECK(becomes_idle(pair.decode));
    }
    CHECK(pair.decode.metric("vllm:external_prefix_cache_hits_total") == (one.prompt_tokens - 1) / 16 * 16);
    CHECK(pair.decode.metric("vllm:prefix_cache_hits_total") == (one.prompt_tokens - 1) / 16 * 16);
  }
}

TEST_CASE("a prompt shorter than a block has nothing to transfer") {
  const pd_fixture pair(transfer_protocol::nixl);
  const auto prefilled = pair.prefill.post("/v1/completions", prefill_of({{"prompt", "hi"}}, ask_prefill));
  REQUIRE(prefilled.status == 200);
  CHECK(prefilled.parsed().at("kv_transfer_params").is_null());
  CHECK(becomes_idle(pair.prefill));
}

TEST_CASE("blocks nobody fetches are free when the lease ends, and then cannot be had") {
  auto gives = pd_fixture::values_of(transfer_protocol::nixl, transfer_role::prefill);
  gives.kv_transfer.lease = std::chrono::milliseconds(100);
  const pd_fixture pair(gives, pd_fixture::values_of(transfer_protocol::nixl, transfer_role::decode));
  const auto body = long_chat(5);
  const auto params = pair.prefill.post(chat_path, prefill_of(body, ask_prefill)).parsed().at("kv_transfer_params");
  REQUIRE(params.is_object());
  CHECK(becomes_idle(pair.prefill));
  const auto late = pair.decode.post(chat_path, with_transfer(body, params));
  CHECK(late.status == 500);
  auto streamed = body;
  streamed["stream"] = true;
  auto call = pair.decode.open("POST", chat_path, json::serialize(with_transfer(streamed, params)));
  const auto event = call.next_event();
  REQUIRE(event);
  CHECK(json::parse(*event).at("error").at("code") == 500);
  CHECK(call.next_event() == "[DONE]");
  CHECK(becomes_idle(pair.decode));
}

TEST_CASE("a decode engine may compute what it does not get") {
  auto takes = pd_fixture::values_of(transfer_protocol::ascend, transfer_role::decode);
  takes.kv_transfer.on_failure = simulator::transfer_failure_policy::recompute;
  const pd_fixture pair(pd_fixture::values_of(transfer_protocol::ascend, transfer_role::prefill), takes);
  const auto body = long_chat(5);
  auto params =
      pair.prefill.post(chat_path, prefill_of(body, ask_prefill)).parsed().at("kv_transfer_params").as_object();
  params["remote_block_ids"] = json::array{json::array{8'000}};  // not held for this request
  CHECK(said(pair.decode.post(chat_path, with_transfer(body, params))) == aggregated(body).text);
  CHECK(becomes_idle(pair.decode));
}

TEST_CASE("a client that leaves the decode engine frees the prefill's blocks") {
  auto gives = pd_fixture::values_of(transfer_protocol::nixl, transfer_role::prefill);
  gives.kv_transfer.bandwidth_gbps = 1e-6;  // the transfer takes for ever
  const pd_fixture pair(gives, pd_fixture::values_of(transfer_protocol::nixl, transfer_role::decode));
  const auto body = long_chat(5);
  const auto params = pair.prefill.post(chat_path, prefill_of(body, ask_prefill)).parsed().at("kv_transfer_params");
  auto call = pair.decode.open("POST", chat_path, json::serialize(with_transfer(body, params)));
  REQUIRE(eventually([&] { return state_of(pair.prefill).at("leases").at(0).at("reading") == true; }));
  CHECK(state_of(pair.decode).at("taking") == 1);
  CHECK(pair.decode.metric("vllm:num_requests_waiting") == 1);
  call.close();
  CHECK(becomes_idle(pair.decode));
  CHECK(becomes_idle(pair.prefill));
}

TEST_CASE("mooncake: both at once, matched by the transfer id, whoever comes first") {
  const auto body = long_chat(20);
  const auto one = aggregated(body);
  const pd_fixture pair(transfer_protocol::mooncake);
  const auto engine_id = text_of(query(pair).at("0").at("engine_id"));
  CHECK(engine_id == text_of(state_of(pair.prefill).at("engine_id")));

  auto decoding = post_later(pair.decode, with_transfer(body, mooncake_take(pair, engine_id, "xfer-1")));
  REQUIRE(eventually([&] { return state_of(pair.decode).at("taking") == 1; }));
  const auto prefilled = pair.prefill.post(chat_path, prefill_of(body, mooncake_give("xfer-1")));
  CHECK(prefilled.status == 200);
  CHECK(prefilled.parsed().at("kv_transfer_params").is_null());
  CHECK(said(decoding.get()) == one.text);

  REQUIRE(pair.prefill.post(chat_path, prefill_of(body, mooncake_give("xfer-2"))).status == 200);
  CHECK(said(pair.decode.post(chat_path, with_transfer(body, mooncake_take(pair, engine_id, "xfer-2")))) == one.text);
  CHECK(becomes_idle(pair.prefill));
  CHECK(becomes_idle(pair.decode));
}

TEST_CASE("mooncake: without a prefill, or with an engine id of before, decode fails when its time is over") {
  auto takes = pd_fixture::values_of(transfer_protocol::mooncake, transfer_role::decode);
  takes.kv_transfer.timeout = std::chrono::milliseconds(150);
  const pd_fixture pair(pd_fixture::values_of(transfer_protocol::mooncake, transfer_role::prefill), takes);
  const auto body = long_chat(5);
  const auto engine_id = text_of(query(pair).at("0").at("engine_id"));
  CHECK(pair.decode.post(chat_path, with_transfer(body, mooncake_take(pair, engine_id, "xfer-1"))).status == 500);
  CHECK(pair.decode.post(chat_path, with_transfer(body, mooncake_take(pair, "stale", "xfer-2"))).status == 500);
  CHECK(becomes_idle(pair.decode));
  CHECK(becomes_idle(pair.prefill));
}

TEST_CASE("sglang: the same body to both, matched by the room; the prefill answers when it has been read") {
  const pd_fixture pair(transfer_protocol::sglang);
  auto body = long_chat(20);
  const auto one = aggregated(body);
  body["bootstrap_host"] = "127.0.0.1";
  body["bootstrap_port"] = pair.prefill.engine->kv_port();
  body["bootstrap_room"] = 4'611'686'018'427'387'905;
  auto prefilling = post_later(pair.prefill, body);
  REQUIRE(eventually([&] { return !state_of(pair.prefill).at("leases").as_array().empty(); }));
  CHECK(state_of(pair.prefill).at("answering") == 1);
  CHECK(said(pair.decode.post(chat_path, body)) == one.text);
  const auto prefilled = prefilling.get();
  CHECK(prefilled.status == 200);
  CHECK(prefilled.parsed().at("usage").at("completion_tokens") == 1);
  CHECK(becomes_idle(pair.prefill));
  CHECK(becomes_idle(pair.decode));
}

TEST_CASE("layer-wise: decode asks the metaserver, whose prefill pushes the KV") {
  const auto body = long_chat(20);
  const auto one = aggregated(body);
  const pd_fixture pair(transfer_protocol::ascend_layerwise);
  metaserver meta(pair.prefill, body);
  meta.refusals = 2;  // tried three times
  const json::object params{
      {"do_remote_decode", false}, {"do_remote_prefill", true}, {"metaserver", json::string(meta.url())}};
  const auto decoded = pair.decode.post(chat_path, with_transfer(body, params), "abc");
  CHECK(said(decoded) == one.text);
  CHECK(becomes_idle(pair.prefill));
  CHECK(becomes_idle(pair.decode));
  CHECK(meta.calls == 3);
  CHECK(meta.asked.at("request_id") == "chatcmpl-abc");
  CHECK(meta.asked.at("do_remote_decode") == true);
  CHECK(meta.asked.at("remote_block_ids").as_array().size() == static_cast<std::size_t>((one.prompt_tokens - 1) / 16));
  CHECK(meta.asked.at("remote_engine_id") == state_of(pair.decode).at("engine_id"));
  CHECK(meta.asked.at("remote_cached_tokens") == 0);

  // What decode has, it does not ask for again.
  REQUIRE(said(pair.decode.post(chat_path, with_transfer(body, params))) == one.text);
  CHECK(becomes_idle(pair.prefill));
  CHECK(meta.asked.at("remote_cached_tokens").to_number<int>() == (one.prompt_tokens - 1) / 16 * 16);
}

TEST_CASE("layer-wise: a metaserver that always refuses is a clear error") {
  const auto body = long_chat(5);
  const pd_fixture pair(transfer_protocol::ascend_layerwise);
  metaserver meta(pair.prefill, body);
  meta.refusals = 100;
  const json::object params{{"do_remote_prefill", true}, {"metaserver", json::string(meta.url())}};
  CHECK(pair.decode.post(chat_path, with_transfer(body, params)).status == 500);
  CHECK(meta.calls == 3);
  CHECK(becomes_idle(pair.decode));
}

TEST_CASE("an ascend decode engine that runs out of memory gives a request back, and it can go on elsewhere") {
  auto takes = pd_fixture::values_of(transfer_protocol::ascend, transfer_role::decode);
  takes.total_blocks = 24;  // 384 tokens
  const pd_fixture pair(pd_fixture::values_of(transfer_protocol::ascend, transfer_role::prefill), takes);
  auto body = chat_body(std::string(300, 'a'), 200);  // about 105 tokens of prompt
  auto other = chat_body(std::string(300, 'b'), 200);
  auto first = post_later(pair.decode, body);
  auto second = post_later(pair.decode, other);
  auto one = first.get();
  auto two = second.get();
  REQUIRE(one.status == 200);
  REQUIRE(two.status == 200);
  const auto given_back = [](const reply& answer) {
    return answer.parsed().at("choices").at(0).at("stop_reason") == "recomputed";
  };
  REQUIRE(given_back(one) != given_back(two));
  if (given_back(two)) {
    std::swap(one, two);
    std::swap(body, other);
  }
  const auto part = said(one);
  CHECK(one.parsed().at("choices").at(0).at("finish_reason") == "stop");
  const engine_fixture whole;
  const auto expected_text = said(whole.post(chat_path, body));
  CHECK(expected_text.starts_with(part));
  auto rest = body;
  rest.at("messages").as_array().push_back({{"role", "assistant"}, {"content", json::string(part)}});
  rest["continue_final_message"] = true;
  rest["add_generation_prompt"] = false;
  rest["max_tokens"] = 200 - one.parsed().at("usage").at("completion_tokens").to_number<int>();
  CHECK(part + said(pair.decode.post(chat_path, rest)) == expected_text);
  CHECK(becomes_idle(pair.decode));
}
