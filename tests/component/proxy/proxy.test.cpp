// The proxy over real sockets: engines that are refused, hang, die, give back; clients that leave.

#include <future>

#include <doctest/doctest.h>

#include "messages/view.hpp"
#include "tests/component/proxy/support/proxy_fixture.hpp"

using namespace infernex;
using namespace infernex::test;
using behaviour = fake_pd_engine::behaviour;

namespace {

const std::string whole_text = "one two three four ";

proxy::settings quick() {
  proxy::settings how;
  how.exchange.prefill_timeout = 150ms;
  how.exchange.timeout = 3s;
  how.exchange.first_token_timeout = 300ms;
  how.exchange.connect_timeout = 300ms;
  return how;
}

void check_whole(const http::response& answer) {
  CHECK(answer.status == 200);
  CHECK(text_of_stream(answer.body) == whole_text);
  CHECK(test::count_of(answer.body, "\"role\"") == 1);
  CHECK(test::count_of(answer.body, "[DONE]") == 1);
  CHECK(answer.body.find("recomputed") == std::string::npos);
  // Of the first prefill's answer, and all that was generated.
  CHECK(answer.body.find(R"("prompt_tokens":9,"completion_tokens":4)") != std::string::npos);
}

}  // namespace

TEST_CASE("undisturbed, by each protocol whose engines answer over HTTP alone") {
  for (const auto protocol : {fb::KvProtocol::Nixl, fb::KvProtocol::Ascend, fb::KvProtocol::Sglang}) {
    proxy_fixture f(protocol);
    const auto streamed = f.chat(true);
    check_whole(streamed);
    CHECK(http::find(streamed.headers, "x-infernex-prefill") == f.prefill[0]->address());
    CHECK(f.prefill[0]->asked == 1);
    CHECK(f.decode[0]->asked == 1);
    const auto plain = f.chat(false);
    CHECK(plain.status == 200);
    CHECK(plain.body.find("one two ") != std::string::npos);
    // What was cached is what prefill found, which answers first where there is an order.
    if (protocol != fb::KvProtocol::Sglang) CHECK(plain.body.find("\"cached_tokens\":8") != std::string::npos);
    CHECK(f.metric("infernex_proxy_requests_total{outcome=\"answered\"}") == 2);
    CHECK(eventually([&] { return f.all_quiet(); }));
  }
}

TEST_CASE("nixl: what prefill answered reaches decode") {
  proxy_fixture f(fb::KvProtocol::Nixl);
  check_whole(f.chat(true));
  const auto sent = f.decode[0]->bodies().at(0);
  CHECK(proxy::find_value(sent, "kv_transfer_params") ==
        R"({"do_remote_prefill":true,"remote_engine_id":"e-1","remote_block_ids":[1,2]})");
  CHECK(proxy::find_value(sent, "max_tokens") == "9");
  CHECK(proxy::find_value(f.prefill[0]->bodies().at(0), "stream") == "false");
}

TEST_CASE("each way in which a prefill engine fails is answered by the other one") {
  for (const auto protocol : {fb::KvProtocol::Nixl, fb::KvProtocol::Sglang}) {
    for (const auto how : {behaviour::error_500, behaviour::hang, behaviour::die}) {
      for (const bool stream : {true, false}) {
        proxy_fixture f(protocol, quick());
        f.prefill[0]->does = how;
        if (protocol == fb::KvProtocol::Sglang) f.decode[0]->does = f.decode[1]->does = behaviour::hang;
        const auto answer = f.chat(stream);
        if (protocol == fb::KvProtocol::Sglang) {
          // Decode hangs for want of blocks, and is left at once when prefill fails.
          CHECK(f.decode[0]->left_by_client >= 1);
          CHECK(answer.status >= 502);
          CHECK(answer.body.find("prefill " + f.prefill[0]->address()) != std::string::npos);
        } else {
          if (stream) {
            check_whole(answer);
          } else {
            CHECK(answer.status == 200);
          }
          CHECK(f.prefill[1]->asked == 1);
        }
        CHECK(eventually([&] { return f.all_quiet(); }));
      }
    }
  }
}

TEST_CASE("no prefill engine works: decode does both") {
  proxy_fixture f(fb::KvProtocol::Nixl);
  f.prefill[0]->does = f.prefill[1]->does = behaviour::error_500;
  const auto answer = f.chat(true);
  CHECK(answer.status == 200);
  CHECK(text_of_stream(answer.body) == whole_text);
  CHECK(proxy::find_value(f.decode[0]->bodies().at(0), "kv_transfer_params").empty());
  CHECK(f.metric("infernex_proxy_local_prefills_total") == 1);
}

TEST_CASE("each way in which a decode engine fails before its first token is answered by another pair") {
  for (const auto protocol : {fb::KvProtocol::Nixl, fb::KvProtocol::Sglang}) {
    for (const auto how : {behaviour::error_500, behaviour::hang, behaviour::die}) {
      proxy_fixture f(protocol, quick());
      f.decode[0]->does = how;
      check_whole(f.chat(true));
      CHECK(f.decode[1]->asked >= 1);
      CHECK(f.metric("infernex_proxy_retries_total") == 1);
      // The blocks that the first prefill held for it are let go.
      CHECK(f.metric("infernex_proxy_releases_total") == (protocol == fb::KvProtocol::Nixl ? 1 : 0));
      CHECK(eventually([&] { return f.all_quiet(); }));
    }
  }
}

TEST_CASE("an engine that dies or gives back in mid-stream: the same text, role, id and usage") {
  for (const auto protocol : {fb::KvProtocol::Nixl, fb::KvProtocol::Ascend, fb::KvProtocol::Sglang}) {
    for (const auto how : {behaviour::die_after_two, behaviour::recompute_after_two}) {
      proxy_fixture f(protocol);
      f.decode[0]->does = how;
      const auto answer = f.chat(true);
      check_whole(answer);
      CHECK(test::count_of(answer.body, "\"id\":\"" + f.decode[0]->address()) ==
            test::count_of(answer.body, "\"id\":"));
      const auto again = how == behaviour::die_after_two    ? f.decode[1]->bodies().at(0)
                         : f.decode[0]->bodies().size() > 1 ? f.decode[0]->bodies().at(1)
                                                            : f.decode[1]->bodies().at(0);
      CHECK(proxy::find_value(again, "max_tokens") == "7");
      CHECK(proxy::find_value(again, "continue_final_message") == "true");
      CHECK(f.metric(how == behaviour::die_after_two ? "infernex_proxy_migrations_total"
                                                     : "infernex_proxy_recomputed_total") == 1);
    }
  }
}

TEST_CASE("a client that leaves takes both legs with it, at each stage") {
  for (const auto protocol : {fb::KvProtocol::Nixl, fb::KvProtocol::Sglang}) {
    {
      proxy_fixture f(protocol);
      f.prefill[0]->does = f.decode[0]->does = behaviour::hang;
      f.leave(false);
      CHECK(f.prefill[0]->left_by_client == 1);
      CHECK(f.decode[0]->left_by_client == (protocol == fb::KvProtocol::Sglang ? 1 : 0));
    }
    proxy_fixture f(protocol);
    f.leave(true);
    CHECK(f.decode[0]->left_by_client >= 1);
  }
}

TEST_CASE("requests that are no good, or for engines that are none of ours, are refused") {
  proxy_fixture f(fb::KvProtocol::Nixl);
  CHECK(f.call("POST", "/v1/chat/completions", "{").status == 400);
  CHECK(
      f.call("POST", "/v1/chat/completions", f.body(false), {{"x-prefiller-host-port", "169.254.169.254:80"}}).status ==
      403);
  CHECK(f.call("POST", "/v1/nothing", "{}").status == 404);
  CHECK(f.call("GET", "/v1/completions").status == 405);
  f.prefill[0]->does = behaviour::bad_request;
  const auto own = f.chat(false);
  CHECK(own.status == 400);
  CHECK(own.body.find("the engine's own words") != std::string::npos);
  CHECK(f.decode[0]->asked == 0);
  CHECK(f.metric("infernex_proxy_requests_total{outcome=\"refused\"}") == 3);
}

TEST_CASE("a request without a pair waits for an engine that comes back") {
  proxy::settings how;
  how.exchange.pair_wait = 20s;
  proxy_fixture f(fb::KvProtocol::Nixl, how);
  const auto order = [&f](int i) { return R"({"type":"decode","instances":[")" + f.decode[i]->address() + "\"]}"; };
  for (int i = 0; i < 2; ++i) REQUIRE(f.call("POST", "/instances/remove", order(i)).status == 200);
  REQUIRE(eventually([&] { return f.metric("infernex_proxy_ready_engines{role=\"decode\"}") == 0; }));
  auto answer = std::async(std::launch::async,
                           [&f] { return f.call("POST", "/v1/chat/completions", proxy_fixture::body(true)); });
  CHECK(eventually([&] { return f.metric("infernex_proxy_in_flight_requests") == 1; }));
  CHECK(f.call("POST", "/instances/add", order(1)).status == 200);
  CHECK(text_of_stream(answer.get().body) == "one two three four ");
  CHECK(f.decode[1]->asked == 1);
}

TEST_CASE("operators: health, metrics, adding and removing, and the state on the bus") {
  proxy_fixture f(fb::KvProtocol::Nixl);
  CHECK(f.call("GET", "/healthcheck").body == R"({"status":"ok","prefill_instances":2,"decode_instances":2})");
  CHECK(f.call("GET", "/readyz").status == 200);
  // Of four engines.
  CHECK(f.metric("vllm:num_requests_running") == 8);

  std::mutex guard;
  fb::PdStateT last;
  const auto watched =
      f.outside->subscribe(f.outside->names().pd_state("g"), {lane::rpc, {}, 64}, [&](inbound<fb::PdState>&& m) {
        const std::lock_guard lock(guard);
        m.message->UnPackTo(&last);
      });
  REQUIRE(watched.ok());
  const auto decodes_ready = [&] {
    const std::lock_guard lock(guard);
    return std::count_if(last.instances.begin(), last.instances.end(), [](const auto& i) {
      return i->role == fb::EngineRole::Decode && i->state == fb::EngineState::Ready;
    });
  };
  CHECK(eventually([&] { return decodes_ready() == 2; }));

  fake_pd_engine more(false);
  const auto order = R"({"type":"decode","instances":[")" + more.address() + "\"]}";
  CHECK(f.call("POST", "/instances/add", order).status == 200);
  CHECK(eventually([&] { return decodes_ready() == 3; }));
  CHECK(f.call("POST", "/instances/remove", order).status == 200);
  const auto as_before = [&] {
    return f.call("GET", "/healthcheck").body == R"({"status":"ok","prefill_instances":2,"decode_instances":2})";
  };
  CHECK(eventually(as_before));
  CHECK(f.call("POST", "/instances/remove", order).status == 404);
  // A single one may be written as it is, and as a URL.
  const auto plain = R"({"type":"decode","instances":"http://)" + more.address() + "/\"}";
  CHECK(f.call("POST", "/instances/add", plain).status == 200);
  CHECK(f.call("POST", "/instances/remove", plain).status == 200);
  CHECK(eventually(as_before));
  CHECK(f.call("POST", "/instances/add", R"({"type":"decode","instances":"nowhere"})").status == 400);

  fb::PdControlT drain;
  drain.group = "g";
  drain.action = fb::PdAction::Drain;
  drain.role = fb::EngineRole::Decode;
  drain.engines = {f.decode[1]->address()};
  std::promise<std::size_t> replied;
  f.outside->request<fb::PdControlReply>(
      f.outside->names().pd_control("g"), encode(drain), 5s, [&replied](result<view<fb::PdControlReply>>&& reply) {
        replied.set_value(reply && text((*reply)->problem()).empty() ? (*reply)->decode_instances()->size() : 0);
      });
  CHECK(replied.get_future().get() == 2);
  CHECK(eventually([&] { return decodes_ready() == 1; }));
  CHECK(f.call("POST", "/instances/add", R"({"type":"both","instances":[]})").status == 400);
}

TEST_CASE("a decode engine that is named alone computes the prompt, and what it begins is finished by a pair") {
  proxy_fixture f(fb::KvProtocol::Ascend);
  const auto alone = [&f] {
    return f.call("POST", "/v1/chat/completions", f.body(true),
                  {{"x-prefiller-host-port", "none"}, {"x-decoder-host-port", f.decode[0]->address()}});
  };
  CHECK(text_of_stream(alone().body) == whole_text);
  CHECK(f.prefill[0]->asked + f.prefill[1]->asked == 0);
  CHECK(f.decode[0]->asked == 1);
  f.decode[0]->does = behaviour::recompute_after_two;
  const auto given_back = alone();
  CHECK(text_of_stream(given_back.body) == whole_text);
  CHECK(given_back.body.find("recomputed") == std::string::npos);
  CHECK(f.prefill[0]->asked + f.prefill[1]->asked == 1);
  f.decode[0]->does = behaviour::die_after_two;
  CHECK(f.decode[1]->asked == 1);  // not the one that gave it back
  CHECK(text_of_stream(alone().body) == whole_text);
  CHECK(f.decode[1]->asked == 2);
  CHECK(f.metric("infernex_proxy_migrations_total") == 1);
}
