// What a proxy does, inside another process's threads: the pair is named by instances, and whoever named it hears of
// it.

#include "actors/proxy/in_process.hpp"

#include <doctest/doctest.h>

#include "tests/component/proxy/support/proxy_fixture.hpp"

using namespace infernex;
using namespace infernex::test;
using behaviour = fake_pd_engine::behaviour;

namespace {

/// A server whose requests go to the named pair, and the engines of group `g`: p0, p1, d0, d1.
class in_process_fixture {
 public:
  explicit in_process_fixture(fb::KvProtocol protocol, proxy::in_process::settings how = {})
      : all(metrics, std::move(how)), server_([this](http::worker& on, http::request& in, http::responder& out) {
          return serve(*this, on, in, out);
        }) {
    for (int i = 0; i < 2; ++i) {
      prefill.push_back(std::make_unique<fake_pd_engine>(true));
      decode.push_back(std::make_unique<fake_pd_engine>(false));
      announce("p" + std::to_string(i), *prefill.back(), fb::EngineRole::Prefill, protocol);
      announce("d" + std::to_string(i), *decode.back(), fb::EngineRole::Decode, protocol);
    }
    all.reached_at("http://127.0.0.1:" + std::to_string(server_.server->port()));
  }

  void announce(const std::string& instance, const fake_pd_engine& e, fb::EngineRole role, fb::KvProtocol protocol,
                const std::string& group = "g", const std::string& scheme = "http://") {
    fb::EngineAnnounceT a;
    a.model = "m";
    a.instance = instance;
    a.url = scheme + e.address();
    a.role = role;
    a.state = fb::EngineState::Ready;
    a.pd_group = group;
    a.kv_transfer = std::make_unique<fb::KvTransferT>();
    a.kv_transfer->protocol = protocol;
    a.kv_transfer->bootstrap_port = e.port();
    flatbuffers::FlatBufferBuilder b;
    b.Finish(fb::EngineAnnounce::Pack(b, &a));
    all.on_announce(*flatbuffers::GetRoot<fb::EngineAnnounce>(b.GetBufferPointer()), std::chrono::steady_clock::now());
  }

  http::response chat(const std::string& body) {
    auto answer = run(clients_.at(0), fetch(clients_.at(0), server_.server->port(), body));
    REQUIRE(answer.ok());
    return *std::move(answer);
  }
  http::response stream() { return chat(R"({"model":"m","stream":true,"messages":[{"role":"user","content":"hi"}]})"); }
  std::vector<std::string> heard() {
    const std::lock_guard lock(guard_);
    return std::exchange(heard_, {});
  }

  metrics_registry metrics;
  proxy::in_process all;
  std::vector<std::unique_ptr<fake_pd_engine>> prefill, decode;
  std::string named_prefill = "p0";
  std::string named_decode = "d0";
  bool alone = false;

 private:
  class listener final : public proxy::pair_listener {
   public:
    explicit listener(in_process_fixture& of) : of_(of) {}
    void on_pair(std::string_view p, std::string_view d) override { note(std::string(p) + ">" + std::string(d)); }
    void on_prefilled() override { note("prefilled"); }

   private:
    void note(std::string what) {
      const std::lock_guard lock(of_.guard_);
      of_.heard_.push_back(std::move(what));
    }
    in_process_fixture& of_;
  };

  static http::task<void> serve(in_process_fixture& f, http::worker& on, http::request& in, http::responder& out) {
    if (in.path == "/v1/metaserver") co_return co_await f.all.serve_metaserver(on, in, out);
    auto& thread = f.threads_.at(on.index());
    if (!thread) thread = std::make_unique<proxy::in_process::thread>(f.all, on);
    listener heard(f);
    proxy::named_request what;
    what.target = "/v1/chat/completions";
    what.request_id = "r-1";
    what.group = "g";
    what.prefill = f.named_prefill;
    what.decode = f.named_decode;
    what.alone = f.alone;
    const auto result = co_await thread->run(std::move(what), in, out, heard);
    const auto refused = result.unknown + result.bad_body;
    if (!refused.empty()) co_await out.send(418, "text/plain", refused);
  }
  static http::task<result<http::response>> fetch(http::worker& on, std::uint16_t port, std::string body) {
    const http::outgoing what{"POST", "/v1/chat/completions", {}, body};
    const http::call_options options;
    const http::origin to{"127.0.0.1", port};
    co_return co_await on.upstream().fetch(to, what, options);
  }

  std::mutex guard_;
  std::vector<std::string> heard_;
  /// By worker; each is its own worker's.
  std::vector<std::unique_ptr<proxy::in_process::thread>> threads_ =
      std::vector<std::unique_ptr<proxy::in_process::thread>>(16);
  http_fixture server_;
  http::io_threads clients_{1};
};

using heard = std::vector<std::string>;
const std::string all_words = "one two three four ";

}  // namespace

TEST_CASE("in process: the named pair is taken, with every protocol") {
  for (const auto protocol : {fb::KvProtocol::Nixl, fb::KvProtocol::Mooncake, fb::KvProtocol::Ascend,
                              fb::KvProtocol::AscendLayerwise, fb::KvProtocol::Sglang}) {
    CAPTURE(fb::EnumNameKvProtocol(protocol));
    in_process_fixture f(protocol);
    f.named_prefill = "p1";
    CHECK(text_of_stream(f.stream().body) == all_words);
    CHECK(f.prefill[0]->asked == 0);
    CHECK(f.decode[1]->asked == 0);
    const auto told = f.heard();
    REQUIRE_FALSE(told.empty());
    CHECK(told.front() == "p1>d0");
    // Of the others the whole answer may be there before prefill has said that it is done.
    if (protocol == fb::KvProtocol::Nixl || protocol == fb::KvProtocol::Ascend)
      CHECK(told == heard{"p1>d0", "prefilled"});
  }
}

TEST_CASE("in process: who named the pair hears of the one that takes over") {
  in_process_fixture f(fb::KvProtocol::Nixl);
  f.decode[0]->does = behaviour::die_after_two;
  CHECK(text_of_stream(f.stream().body) == all_words);
  const auto told = f.heard();
  REQUIRE(told.size() == 4);
  CHECK(told[0] == "p0>d0");
  CHECK(told[1] == "prefilled");
  CHECK(told[2].ends_with(">d1"));
  CHECK(told[3] == "prefilled");
}

TEST_CASE("in process: a pair that has failed too often is passed over, although it is named") {
  proxy::in_process::settings how;
  how.group.breaker.failures = 1;
  in_process_fixture f(fb::KvProtocol::Nixl, how);
  f.prefill[0]->does = behaviour::error_500;
  CHECK(text_of_stream(f.stream().body) == all_words);
  CHECK(f.prefill[0]->asked == 1);
  f.heard();
  CHECK(text_of_stream(f.stream().body) == all_words);
  CHECK(f.prefill[0]->asked == 1);
  CHECK_FALSE(f.heard().front() == "p0>d0");
}

TEST_CASE("in process: nothing begins for a stranger, nor for a body that is none") {
  in_process_fixture f(fb::KvProtocol::Nixl);
  f.named_decode = "d9";
  CHECK(f.stream().body.find("does not hold the pair") != std::string::npos);
  f.named_decode = "d0";
  CHECK(f.chat("{").status == 418);
  CHECK(f.heard().empty());
  CHECK(f.prefill[0]->asked == 0);
}

TEST_CASE("in process: a group ends with its last engine") {
  in_process_fixture f(fb::KvProtocol::Nixl);
  f.all.on_tick(std::chrono::steady_clock::now() + 1h, true);
  CHECK(f.stream().body.find("does not hold the pair") != std::string::npos);
}

TEST_CASE("in process: groups whose engines were all refused make room for others") {
  proxy::in_process::settings how;
  how.max_groups = 2;
  in_process_fixture f(fb::KvProtocol::Nixl, how);  // group g is one
  const auto add = [&f](const std::string& group, const std::string& scheme) {
    f.announce("x", *f.prefill[0], fb::EngineRole::Prefill, fb::KvProtocol::Nixl, group, scheme);
    return f.metrics
        .counter("infernex_proxy_announcements_refused_total",
                 "Announcements without a usable address, or over the bound of engines")
        .Value();
  };
  CHECK(add("bad", "https://") == 1);
  CHECK(add("good", "http://") == 2);  // no room
  f.all.on_tick(std::chrono::steady_clock::now(), true);
  CHECK(add("good", "http://") == 2);
}

TEST_CASE("in process: a decode engine by itself, whose answer a pair goes on with") {
  in_process_fixture f(fb::KvProtocol::Ascend);
  f.named_prefill.clear();
  f.alone = true;
  CHECK(text_of_stream(f.stream().body) == all_words);
  CHECK(f.heard() == heard{">d0"});
  f.decode[0]->does = behaviour::die_after_two;
  CHECK(text_of_stream(f.stream().body) == all_words);
  const auto told = f.heard();
  REQUIRE(told.size() == 3);
  CHECK(told[0] == ">d0");
  CHECK(told[1].ends_with(">d1"));
  CHECK_FALSE(told[1].starts_with(">"));
  f.named_decode = "d9";
  CHECK(f.stream().body.find("does not hold the engine") != std::string::npos);
}

TEST_CASE("in process: where only the decode engine is named, the group finds who prefills") {
  in_process_fixture f(fb::KvProtocol::Nixl);
  f.named_prefill.clear();
  f.named_decode = "d1";
  CHECK(text_of_stream(f.stream().body) == all_words);
  const auto told = f.heard();
  REQUIRE(told.size() == 2);
  CHECK(told[0].ends_with(">d1"));
  CHECK_FALSE(told[0].starts_with(">"));
}

TEST_CASE("in process: a named engine that nobody listens at is run into once, not by every request") {
  in_process_fixture f(fb::KvProtocol::Nixl);
  f.decode[0]->refuse();
  CHECK(text_of_stream(f.stream().body) == all_words);
  CHECK(f.heard().front() == "p0>d0");
  CHECK(text_of_stream(f.stream().body) == all_words);
  CHECK(f.heard().front().ends_with(">d1"));
  f.all.on_tick(std::chrono::steady_clock::now(), true);
  CHECK(text_of_stream(f.stream().body) == all_words);
  CHECK(f.heard().front() == "p0>d0");
}
