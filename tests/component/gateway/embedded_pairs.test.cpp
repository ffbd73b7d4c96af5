#include "gateway/pair_exchange.hpp"
#include "tests/component/gateway/fixture.hpp"

using namespace infernex;
using namespace infernex::test;

namespace {

/// Plays what runs the transfer protocols: what is done for a request is to order.
class fake_pairs final : public gateway::pair_exchanges {
 public:
  enum class does { answers, streams_by_another_pair, fails, cannot_use_it, finds_the_body_bad, waits_for_the_client };
  std::atomic<does> next{does::answers};
  std::atomic<unsigned> runs{0}, left{0}, announced{0}, ticks{0};
  std::string url() {
    const std::lock_guard lock(guard_);
    return url_;
  }
  std::string last() {
    const std::lock_guard lock(guard_);
    return last_;
  }

  std::unique_ptr<gateway::pair_exchange> for_thread(http::worker& on) override {
    return std::make_unique<one>(*this, on);
  }
  void on_announce(const fb::EngineAnnounce&, gateway::clock_point) override { ++announced; }
  void on_tick(gateway::clock_point, bool) override { ++ticks; }
  void reached_at(std::string url) override {
    const std::lock_guard lock(guard_);
    url_ = std::move(url);
  }
  http::task<void> serve_metaserver(http::worker&, http::request& in, http::responder& out) override {
    co_await out.send(200, "application/json", in.body);
  }

 private:
  class one final : public gateway::pair_exchange {
   public:
    one(fake_pairs& all, http::worker& on) : all_(all), on_(on) {}
    http::task<gateway::pair_result> run(gateway::api, const gateway::candidate& to, const std::string& target,
                                         const std::string& request_id, http::request& in, http::responder& out,
                                         gateway::pair_listener& heard) override;

   private:
    fake_pairs& all_;
    http::worker& on_;
  };
  std::mutex guard_;
  std::string url_;
  std::string last_;
};

http::task<gateway::pair_result> fake_pairs::one::run(gateway::api, const gateway::candidate& to,
                                                      const std::string& target, const std::string& request_id,
                                                      http::request&, http::responder& out,
                                                      gateway::pair_listener& heard) {
  ++all_.runs;
  {
    const std::lock_guard lock(all_.guard_);
    all_.last_ = to.prefill_instance + "|" + to.instance + "|" + to.pd_group + "|" + target + "|" + request_id;
  }
  gateway::pair_result result;
  const auto how = all_.next.load();
  if (how == does::cannot_use_it) {
    result.unusable = "does not hold the pair";
    co_return result;
  }
  if (how == does::finds_the_body_bad) {
    result.bad_body = "too deep";
    co_return result;
  }
  heard.on_pair(to.prefill_instance, to.instance);
  heard.on_prefilled();
  http::fields extra;
  extra.push_back({"X-Request-Id", request_id});
  if (how == does::fails) {
    result.failed = true;
    result.story = "prefill 10.0.0.1:1 answered 500";
    const auto body = http::openai_error(502, "no pair");
    co_await out.send(502, "application/json", body, std::move(extra));
    co_return result;
  }
  if (how == does::waits_for_the_client) {
    gateway::waiter gone(on_.context());
    out.on_client_gone([&gone] { gone.cancel(); });
    if (co_await gone.wait(std::chrono::steady_clock::now() + 30s) == gateway::waiter::outcome::cancelled) ++all_.left;
    out.on_client_gone({});
    result.client_gone = true;
    co_return result;
  }
  if (how == does::streams_by_another_pair) {
    heard.on_pair("p-other", "d-other");
    heard.on_prefilled();
    const auto events = event_role + event_text;
    const auto rest = event_usage + event_done;
    co_await out.start_stream(200, "text/event-stream", std::move(extra));
    co_await out.write(events);
    co_await out.write(rest);
    co_await out.end_stream();
    co_return result;
  }
  const std::string body = R"({"id":"x","usage":{"prompt_tokens":33,"completion_tokens":1}})";
  co_await out.send(200, "application/json", body, std::move(extra));
  co_return result;
}

/// What the gateway tells routers.
class life_watch {
 public:
  explicit life_watch(bus& on) {
    auto made = on.subscribe(on.names().any_request_life(), {lane::stream, {}, 1024},
                             [this](inbound<fb::RequestLife>&& m) { take(*m.message); });
    REQUIRE(made.ok());
    subscription_ = *std::move(made);
  }
  /// Requests that were ever said to be in flight at the engine, and are now; -1: it was never listed.
  struct count {
    int most = -1;
    int now = -1;
  };
  count at(const std::string& instance) {
    const std::lock_guard lock(guard_);
    return engines_[instance];
  }
  std::vector<fb::FinishedT> finished() {
    const std::lock_guard lock(guard_);
    return finished_;
  }

 private:
  void take(const fb::RequestLife& m) {
    const std::lock_guard lock(guard_);
    if (const auto* rows = m.in_flight()) {
      for (const auto* row : *rows) {
        auto& c = engines_[std::string(text(row->instance()))];
        c.now = static_cast<int>(row->requests());
        c.most = std::max(c.most, c.now);
      }
    }
    if (const auto* all = m.finished()) {
      for (const auto* f : *all) finished_.push_back(*std::unique_ptr<fb::FinishedT>(f->UnPack()));
    }
  }
  std::mutex guard_;
  std::map<std::string, count> engines_;
  std::vector<fb::FinishedT> finished_;
  subscription subscription_;
};

struct embedded_setup {
  std::shared_ptr<fake_pairs> pairs = std::make_shared<fake_pairs>();
  fake_engine decode{"d0"};
  fake_engine prefill{"p0"};
  gateway_fixture g{[] {
                      gateway::settings how;
                      how.route_timeout = 5s;
                      how.life_interval = 1ms;
                      how.pd = gateway::pd_mode::embedded;
                      return how;
                    }(),
                    nullptr, pairs};
  fake_router router{*g.outside, {{"d0", decode.url(), 0, prefill.url()}}};
  life_watch life{*g.outside};
  embedded_setup() { g.add({&decode}); }
  fb::FinishedT last_record() {
    REQUIRE(eventually([this] { return !life.finished().empty(); }));
    return life.finished().back();
  }
};

}  // namespace

TEST_CASE("embedded: a pair is run in the gateway, which tells its own name for metaservers") {
  embedded_setup s;
  CHECK(s.pairs->url() == "http://127.0.0.1:" + std::to_string(s.g.gateway->port()));
  CHECK(s.pairs->announced > 0);
  const auto answer =
      s.g.call("POST", "/v1/chat/completions?a=b", gateway_fixture::chat_body(), {{"X-Request-Id", "r1"}});
  CHECK(answer.status == 200);
  CHECK(header(answer, "x-infernex-endpoint") == "d0");
  CHECK(header(answer, "x-infernex-decision").find("kv-aware: test") != std::string::npos);
  CHECK(header(answer, "x-request-id") == "r1");
  CHECK(s.pairs->last() == "prefill-of-d0|d0|g|/v1/chat/completions?a=b|r1");
  CHECK(s.decode.chats == 0);
  const auto record = s.last_record();
  CHECK(record.instance == "d0");
  CHECK(record.attempts == 1);
  CHECK(record.outcome == fb::Outcome::Completed);
  CHECK(record.prompt_tokens == 33);
  CHECK(eventually([&] { return s.life.at("d0").now == 0 && s.life.at("prefill-of-d0").now == 0; }));
  CHECK(s.g.call("POST", "/v1/metaserver", "{}").body == "{}");
}

TEST_CASE(
    "embedded: what a request counts at engines follows it to another pair, and nobody's speed is learned of it") {
  embedded_setup s;
  s.pairs->next = fake_pairs::does::streams_by_another_pair;
  const auto answer = s.g.chat(R"(,"stream":true)");
  CHECK(answer.status == 200);
  CHECK(answer.body == event_role + event_text + event_usage + event_done);
  CHECK(header(answer, "x-infernex-endpoint") == "d-other");
  CHECK(header(answer, "x-infernex-decision").find("now at p-other and d-other") != std::string::npos);
  const auto record = s.last_record();
  CHECK(record.instance == "d-other");
  CHECK(record.attempts == 2);
  CHECK(record.cached_tokens == 32);
  CHECK(record.ttft_ms.has_value());
  CHECK_FALSE(record.predicted_cached_tokens.has_value());
  for (const auto* engine : {"d0", "prefill-of-d0", "d-other", "p-other"})
    CHECK_MESSAGE(eventually([&] { return s.life.at(engine).now == 0; }), engine);
}

TEST_CASE("embedded: a pair that is not known yet costs the decode engine the prompt, and the client nothing") {
  embedded_setup s;
  s.pairs->next = fake_pairs::does::cannot_use_it;
  const auto answer = s.g.chat();
  CHECK(answer.status == 200);
  CHECK(s.decode.chats == 1);
  CHECK(header(answer, "x-infernex-decision").find("PD group g does not hold the pair: the decode engine computes") !=
        std::string::npos);
  const auto record = s.last_record();
  // Not the pair's doing: routers learn nothing of it.
  CHECK(record.attempts == 2);
  CHECK(s.life.at("prefill-of-d0").most == -1);
}

TEST_CASE("embedded: where no pair can answer, the client hears what failed, in one answer") {
  embedded_setup s;
  s.pairs->next = fake_pairs::does::fails;
  const auto answer = s.g.chat();
  CHECK(answer.status == 503);
  CHECK(answer.body.find("other pairs of PD group g could not answer: prefill 10.0.0.1:1 answered 500") !=
        std::string::npos);
  CHECK(s.last_record().outcome == fb::Outcome::EngineFailed);
}

TEST_CASE("embedded: a body that the protocols cannot work with is the client's fault") {
  embedded_setup s;
  s.pairs->next = fake_pairs::does::finds_the_body_bad;
  const auto answer = s.g.chat();
  CHECK(answer.status == 400);
  CHECK(answer.body.find("too deep") != std::string::npos);
}

TEST_CASE("embedded: a client that leaves is told to whoever runs its request") {
  embedded_setup s;
  s.pairs->next = fake_pairs::does::waits_for_the_client;
  {
    auto client = s.g.socket();
    REQUIRE(client.send(gateway_fixture::chat_bytes()));
    REQUIRE(eventually([&] { return s.pairs->runs == 1; }));
  }
  CHECK(eventually([&] { return s.pairs->left == 1; }));
  CHECK(s.last_record().outcome == fb::Outcome::ClientGone);
  CHECK(eventually([&] { return s.life.at("d0").now == 0 && s.life.at("prefill-of-d0").now == 0; }));
}

TEST_CASE("without pd: embedded there is no metaserver") {
  gateway_fixture g;
  CHECK(g.call("POST", "/v1/metaserver", "{}").status == 404);
}
