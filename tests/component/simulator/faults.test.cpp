#include "tests/component/simulator/pd_fixture.hpp"

using namespace infernex;
using namespace infernex::test;
using simulator::transfer_protocol;
using simulator::transfer_role;

namespace {

simulator::settings faulty() {
  auto values = engine_fixture::fast();
  values.faults = true;
  return values;
}

/// Text of a stream up to its cut or its end; whether it was cut.
std::pair<std::string, bool> read_until_cut(http_call call) {
  std::string text;
  try {
    while (const auto event = call.next_event()) {
      if (*event == "[DONE]") return {text, false};
      const auto choice = json::parse(*event).at("choices").at(0);
      text += text_of(choice.at("delta").at("content"));
    }
  } catch (const boost::system::system_error&) {
    return {text, true};
  }
  return {text, false};
}

http_call open_stream(const engine_fixture& sim, json::object body) {
  body["stream"] = true;
  return sim.open("POST", chat_path, json::serialize(body));
}

bool is_cut(const engine_fixture& sim, const json::object& body) {
  try {
    sim.post(chat_path, body);
  } catch (const boost::system::system_error&) {
    return true;
  }
  return false;
}

bool answers(const engine_fixture& sim) {
  try {
    return sim.get("/health").status == 200;
  } catch (const boost::system::system_error&) {
    return false;
  }
}

std::string engine_id(const engine_fixture& sim) {
  try {
    return text_of(state_of(sim).at("engine_id"));
  } catch (const boost::system::system_error&) {
    return {};
  }
}

/// It serves, under another engine id than `before`.
bool comes_back(const engine_fixture& sim, const std::string& before) {
  return eventually([&] {
    const auto now = engine_id(sim);
    return !now.empty() && now != before;
  });
}

}  // namespace

TEST_CASE("without the setting there are no faults to command") {
  const engine_fixture sim;
  CHECK(sim.get("/sim/state").status == 404);
  CHECK(sim.post("/sim/faults", {{"fault", "reset"}}).status == 404);
}

TEST_CASE("errors, a broken connection and a hang strike as often as told, and leave nothing") {
  const engine_fixture sim(faulty());
  const auto body = chat_body("hello", 5);
  CHECK(sim.post("/sim/faults", {{"fault", "no such"}}).status == 400);
  arm(sim, {{"fault", "error500"}, {"count", 1}});
  arm(sim, {{"fault", "error503"}, {"count", 1}});
  arm(sim, {{"fault", "reset"}, {"count", 1}});
  CHECK(sim.post(chat_path, body).status == 500);
  CHECK(sim.post(chat_path, body).status == 503);
  CHECK(is_cut(sim, body));
  arm(sim, {{"fault", "hang"}, {"count", 1}});
  auto hanging = sim.open("POST", chat_path, json::serialize(body));
  REQUIRE(eventually([&] { return state_of(sim).at("answering") == 1; }));
  hanging.close();
  CHECK(becomes_idle(sim));
  CHECK(said(sim.post(chat_path, body)).size() == 15);
  arm(sim, {{"fault", "error500"}});
  REQUIRE(http_call(sim.engine->port(), "DELETE", "/sim/faults").finish().status == 200);
  CHECK(sim.post(chat_path, body).status == 200);
}

TEST_CASE("a connection that is cut has sent exactly the tokens before") {
  const engine_fixture sim(faulty());
  const auto body = chat_body("a long answer", 40);
  const auto whole = said(sim.post(chat_path, body));
  for (const int tokens : {0, 1, 17}) {
    arm(sim, {{"fault", "cut"}, {"count", 1}, {"after_tokens", tokens}});
    const auto [text, cut] = read_until_cut(open_stream(sim, body));
    CHECK(cut);
    CHECK(text == whole.substr(0, static_cast<std::size_t>(tokens) * 3));
  }
  arm(sim, {{"fault", "cut"}, {"count", 1}, {"when", "prefill"}});
  CHECK(is_cut(sim, body));
  CHECK(becomes_idle(sim));
}

TEST_CASE("an answer is given back after as many tokens as told, and goes on where it was") {
  const engine_fixture sim(faulty());
  const auto body = chat_body("a long answer", 40);
  const auto whole = said(sim.post(chat_path, body));
  arm(sim, {{"fault", "recomputed"}, {"count", 1}, {"after_tokens", 11}});
  const auto part = sim.post(chat_path, body);
  CHECK(said(part) == whole.substr(0, 33));
  CHECK(part.parsed().at("choices").at(0).at("stop_reason") == "recomputed");
  CHECK(part.parsed().at("usage").at("completion_tokens") == 11);
  CHECK(becomes_idle(sim));
}

TEST_CASE("an engine that dies cuts everybody off, and comes back empty under another id") {
  auto values = faulty();
  values.kv_transfer.protocol = transfer_protocol::nixl;
  const engine_fixture sim(values);
  const auto body = chat_body("a long answer for a short life", 30);
  const auto before = state_of(sim);
  const auto started = sim.metric("process_start_time_seconds").value_or(0);
  const auto whole = said(sim.post(chat_path, body));
  auto bystander = open_stream(sim, chat_body("somebody else", 20'000));
  REQUIRE(bystander.next_event());
  arm(sim, {{"fault", "die"}, {"count", 1}, {"after_tokens", 5}, {"down_ms", 20}});
  const auto [text, cut] = read_until_cut(open_stream(sim, body));
  CHECK(cut);
  CHECK(text == whole.substr(0, 15));
  CHECK_THROWS_AS(while (bystander.next_event()){}, boost::system::system_error);
  REQUIRE(comes_back(sim, text_of(before.at("engine_id"))));
  CHECK(state_of(sim).at("kv_port") == before.at("kv_port"));
  CHECK(is_idle(sim));
  const auto again = sim.post(chat_path, body);
  CHECK(said(again) == whole);
  CHECK(cached_tokens(again) == 0);
  CHECK(sim.metric("process_start_time_seconds").value_or(0) > started);
}

TEST_CASE("an engine dies in the middle of a prefill, and one that refuses keeps what it knows") {
  auto values = faulty();
  values.kv_transfer.protocol = transfer_protocol::nixl;
  const engine_fixture sim(values);
  const auto body = long_chat(5);
  const auto first_id = engine_id(sim);
  arm(sim, {{"fault", "die"}, {"count", 1}, {"when", "prefill"}, {"down_ms", 1}});
  CHECK(is_cut(sim, body));
  REQUIRE(comes_back(sim, first_id));
  REQUIRE(sim.post(chat_path, body).status == 200);
  const auto before = state_of(sim);
  arm(sim, {{"fault", "refuse"}, {"down_ms", 100}});
  REQUIRE(eventually([&] { return !answers(sim); }));
  REQUIRE(eventually([&] { return answers(sim); }));
  CHECK(state_of(sim).at("engine_id") == before.at("engine_id"));
  CHECK(cached_tokens(sim.post(chat_path, body)) > 0);
}

TEST_CASE("an engine stops while it is down") {
  const engine_fixture sim(faulty());
  arm(sim, {{"fault", "restart"}, {"down_ms", 600'000}});
  REQUIRE(eventually([&] { return !answers(sim); }));
  sim.engine->stop(std::chrono::milliseconds(0));
  CHECK_FALSE(answers(sim));
}

TEST_CASE("a transfer that fails is an error of the decode engine, and its memory is free") {
  const pd_fixture pair(transfer_protocol::nixl);
  const auto body = long_chat(5);
  const json::object ask{{"do_remote_decode", true}};
  const auto params = pair.prefill.post(chat_path, prefill_of(body, ask)).parsed().at("kv_transfer_params");
  arm(pair.prefill, {{"fault", "transfer"}, {"count", 1}});
  CHECK(pair.decode.post(chat_path, with_transfer(body, params)).status == 500);
  CHECK(becomes_idle(pair.decode));
  // The lease goes on: somebody else may read.
  CHECK(pair.decode.post(chat_path, with_transfer(body, params)).status == 200);
  CHECK(becomes_idle(pair.prefill));
}

TEST_CASE("a prefill that dies while its KV is read fails the decode, which leaves nothing") {
  auto gives = pd_fixture::values_of(transfer_protocol::nixl, transfer_role::prefill);
  gives.kv_transfer.bandwidth_gbps = 1e-6;
  const pd_fixture pair(gives, pd_fixture::values_of(transfer_protocol::nixl, transfer_role::decode));
  const auto body = long_chat(5);
  const auto params = pair.prefill.post(chat_path, prefill_of(body, json::object{{"do_remote_decode", true}}))
                          .parsed()
                          .at("kv_transfer_params");
  const auto first_id = engine_id(pair.prefill);
  auto decoding = post_later(pair.decode, with_transfer(body, params));
  REQUIRE(eventually([&] { return state_of(pair.prefill).at("leases").at(0).at("reading") == true; }));
  arm(pair.prefill, {{"fault", "restart"}, {"down_ms", 1}});
  CHECK(decoding.get().status == 500);
  CHECK(becomes_idle(pair.decode));
  // Its blocks and its name are gone with it.
  REQUIRE(comes_back(pair.prefill, first_id));
  CHECK(pair.decode.post(chat_path, with_transfer(body, params)).status == 500);
  CHECK(becomes_idle(pair.prefill));
}

TEST_CASE("a decode engine that forgets to ask the metaserver fails when its time is over") {
  auto takes = pd_fixture::values_of(transfer_protocol::ascend_layerwise, transfer_role::decode);
  takes.kv_transfer.timeout = std::chrono::milliseconds(100);
  const engine_fixture sim(takes);
  arm(sim, {{"fault", "drop_metaserver"}, {"count", 1}});
  const json::object params{{"do_remote_prefill", true}, {"metaserver", "http://127.0.0.1:1/v1/metaserver"}};
  CHECK(sim.post(chat_path, with_transfer(long_chat(5), params)).status == 500);
  CHECK(becomes_idle(sim));
}

TEST_CASE("a slow engine is slow until it is told otherwise") {
  const engine_fixture sim(faulty());
  arm(sim, {{"fault", "slow"}, {"factor", 1e6}});
  auto call = sim.open("POST", chat_path, json::serialize(chat_body("hello", 5)));
  REQUIRE(sim.becomes("vllm:num_requests_running", 1));
  call.close();
  CHECK(becomes_idle(sim));
}
