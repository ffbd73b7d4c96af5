#include "tests/component/gateway/fixture.hpp"

using namespace infernex;
using namespace infernex::test;

namespace {

void say_proxy(bus& on, const std::string& url) {
  fb::PdStateT state;
  state.origin = std::make_unique<fb::OriginT>();
  state.origin->epoch = 1;
  state.group = "g";
  state.model = "m";
  state.url = url;
  CHECK(on.publish(on.names().pd_state("g"), encode(state)) == errc::none);
}

struct pair_setup {
  fake_engine decode{"d0"};
  fake_engine prefill{"p0"};
  fake_engine proxy{"proxy"};
  gateway_fixture g{[] {
    gateway::settings how;
    how.route_timeout = 5s;
    return how;
  }()};
  fake_router router{*g.outside, {{"d0", decode.url(), 0, prefill.url()}}};
  pair_setup() { g.add({&decode}); }
};

std::string address(const fake_engine& of) { return of.url().substr(std::string("http://").size()); }

}  // namespace

TEST_CASE("a pair goes to the proxy of its group, which is told who prefills and who decodes") {
  pair_setup s;
  REQUIRE(eventually([&] {
    say_proxy(*s.g.outside, s.proxy.url());
    return s.g.chat().status == 200 && s.proxy.chats > 0;
  }));
  const auto before = s.decode.chats.load();
  // What a client says of the pair does not count beside the router's choice.
  const auto answer = s.g.chat({}, {{"X-Prefiller-Host-Port", "10.9.9.9:1"}});
  CHECK(answer.status == 200);
  CHECK(header(answer, "x-infernex-endpoint") == "d0");
  CHECK(s.decode.chats == before);
  CHECK(s.prefill.chats == 0);
  const auto seen = s.proxy.last_seen();
  CHECK(seen.find("x-prefiller-host-port: " + address(s.prefill)) != std::string::npos);
  CHECK(seen.find("x-decoder-host-port: " + address(s.decode)) != std::string::npos);
  CHECK(seen.find("10.9.9.9") == std::string::npos);
}

TEST_CASE("without a proxy of the group the decode engine computes the prompt, and the decision says so") {
  pair_setup s;
  const auto answer = s.g.chat();
  CHECK(answer.status == 200);
  CHECK(s.decode.chats == 1);
  CHECK(header(answer, "x-infernex-decision").find("the proxy of PD group g is not on the bus") != std::string::npos);
}

TEST_CASE("a proxy that is gone without a word costs no request") {
  pair_setup s;
  REQUIRE(eventually([&] {
    say_proxy(*s.g.outside, "http://127.0.0.1:1");
    const auto answer = s.g.chat();
    CHECK(answer.status == 200);
    return header(answer, "x-infernex-decision").find("the proxy of PD group g cannot be reached") != std::string::npos;
  }));
  CHECK(s.g.metric("infernex_gateway_retries_total") == 0);
}

namespace {

/// Two decode engines of group `g`, and a proxy that the gateway knows.
struct decode_setup {
  fake_engine first{"d0"};
  fake_engine second{"d1"};
  fake_engine proxy{"proxy"};
  gateway_fixture g{[] {
    gateway::settings how;
    how.route_timeout = 5s;
    return how;
  }()};
  fake_router router;
  explicit decode_setup(const std::string& prefill_url)
      : router(*g.outside, {{"d0", first.url(), 0, prefill_url}, {"d1", second.url()}}) {
    g.role = fb::EngineRole::Decode;
    g.add({&first, &second});
    REQUIRE(eventually([&] {
      say_proxy(*g.outside, proxy.url());
      return g.chat().status == 200 && proxy.chats > 0;
    }));
  }
};

}  // namespace

TEST_CASE("a decode engine that is to do all goes to the proxy too, which is told that nobody prefills for it") {
  decode_setup s({});
  const auto before = s.first.chats.load();
  CHECK(header(s.g.chat(), "x-infernex-endpoint") == "d0");
  CHECK(s.first.chats == before);
  const auto seen = s.proxy.last_seen();
  CHECK(seen.find("x-prefiller-host-port: none") != std::string::npos);
  CHECK(seen.find("x-decoder-host-port: " + address(s.first)) != std::string::npos);
}

TEST_CASE("runners-up of a pair go to the proxy with their prefill left to it, and its words reach the client") {
  decode_setup s("http://127.0.0.1:9");
  s.proxy.answers = fake_engine::behaviour::loading;
  const auto answer = s.g.chat({}, {{"X-Prefiller-Host-Port", "10.9.9.9:1"}});
  CHECK(answer.status == 503);
  CHECK(answer.body.find("d0 by the proxy of PD group g, which answered 503: loading") != std::string::npos);
  CHECK(answer.body.find("d1 by the proxy of PD group g, which answered 503: loading") != std::string::npos);
  const auto seen = s.proxy.last_seen();
  CHECK(seen.find("x-decoder-host-port: " + address(s.second)) != std::string::npos);
  CHECK(seen.find("x-prefiller-host-port") == std::string::npos);
}

TEST_CASE("a decode engine whose proxy is gone without a word is asked itself") {
  decode_setup s({});
  REQUIRE(eventually([&] {
    say_proxy(*s.g.outside, "http://127.0.0.1:1");
    const auto answer = s.g.chat();
    CHECK(answer.status == 200);
    return header(answer, "x-infernex-decision").find("the proxy of PD group g cannot be reached") != std::string::npos;
  }));
  CHECK(s.g.metric("infernex_gateway_retries_total") == 0);
}
