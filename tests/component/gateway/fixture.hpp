#pragma once

#include <atomic>
#include <memory>
#include <mutex>
#include <numeric>
#include <string>
#include <vector>

#include <doctest/doctest.h>

#include "actors/indexer/index_set.hpp"
#include "actors/runtime/bus.hpp"
#include "actors/runtime/caf.hpp"
#include "actors/runtime/metrics.hpp"
#include "gateway/gateway.hpp"
#include "gateway/placing.hpp"
#include "tests/component/gateway/fake_engine.hpp"
#include "tests/component/runtime/http_fixture.hpp"
#include "tests/support/nats_server.hpp"
#include "tests/support/wait.hpp"

namespace infernex::test {

/// A gateway on a real bus, with what it needs around it.
class gateway_fixture {
 public:
  explicit gateway_fixture(gateway::settings how = {}, std::shared_ptr<indexer::index_set> index = nullptr,
                           std::shared_ptr<gateway::pair_exchanges> pairs = nullptr)
      : system_(config_), clients_(1) {
    bus_settings to;
    to.url = nats.url();
    bus_ = connect(to);
    outside = connect(to);
    process_.emplace(runtime{system_, *bus_, metrics, "test-1", 42, {}});
    how.port = 0;
    how.threads = 2;
    auto started = gateway::start(*process_, how, std::move(index), std::move(pairs));
    REQUIRE_MESSAGE(started.ok(), (started ? std::string{} : render(started.failure())));
    gateway = *std::move(started);
  }
  ~gateway_fixture() {
    gateway->stop(5s);
    gateway.reset();
  }

  /// Announces an engine (block size 16) as its agent would.
  void announce(const std::string& instance, const std::string& url, fb::EngineState state = fb::EngineState::Ready,
                const std::string& model = "m", std::optional<std::uint32_t> rank = std::nullopt) {
    fb::EngineAnnounceT a;
    a.origin = std::make_unique<fb::OriginT>();
    a.origin->id = "agent/" + instance;
    a.origin->epoch = 1;
    a.origin->sequence = ++sequence_;
    a.model = model;
    a.instance = instance;
    a.url = url;
    a.state = state;
    a.reason = state == fb::EngineState::Ready ? "healthy" : "weights are being loaded";
    a.engine_epoch = 7;
    a.kv_health = kv_health;
    a.block_size = 16;
    a.max_model_len = 4096;
    if (rank) a.data_parallel_rank = *rank;
    a.role = role;
    if (role != fb::EngineRole::Aggregated) a.pd_group = "g";
    REQUIRE(outside->publish(outside->names().announce(model, instance), encode(a), lane::rpc) == errc::none);
  }
  /// Announces ready engines and waits until the gateway knows them.
  void add(std::initializer_list<fake_engine*> engines) {
    const auto announce_all = [&] {
      for (auto* e : engines) announce(e->name(), e->url());
    };
    // As agents do, again and again: the gateway's subscription may not be there yet.
    REQUIRE(eventually([&] {
      announce_all();
      return get("/readyz").status == 200;
    }));
    // The gateway has read every announcement before one that comes later on the same connection.
    announce_all();
    announce("zz-last", "http://127.0.0.1:1", fb::EngineState::Down, "marker");
    REQUIRE(eventually([this] { return get("/v1/models").body.find("\"id\":\"marker\"") != std::string::npos; }));
  }

  http::response call(std::string method, std::string target, std::string body, http::fields headers = {}) {
    auto answer = run(clients_.at(0), fetch(clients_.at(0), {"127.0.0.1", gateway->port()}, std::move(method),
                                            std::move(target), std::move(body), std::move(headers)));
    REQUIRE_MESSAGE(answer.ok(), (answer ? std::string{} : render(answer.failure())));
    return *std::move(answer);
  }
  http::response get(std::string target) { return call("GET", std::move(target), {}); }
  http::response chat(std::string more = {}, http::fields headers = {}) {
    return call("POST", "/v1/chat/completions", chat_body(std::move(more)), std::move(headers));
  }
  static std::string chat_body(std::string more = {}) {
    return R"({"model":"m","messages":[{"role":"user","content":"hello"}])" + more + "}";
  }
  /// The head and body of a chat request as bytes, for raw sockets.
  static std::string chat_bytes(std::string more = {}) {
    const auto body = chat_body(std::move(more));
    return "POST /v1/chat/completions HTTP/1.1\r\nHost: x\r\nContent-Type: application/json\r\nContent-Length: " +
           std::to_string(body.size()) + "\r\n\r\n" + body;
  }
  raw_socket socket() { return raw_socket::connect(gateway->port()); }
  double metric(const std::string& line_start) {
    const auto page = "\n" + get("/metrics").body;
    const auto at = page.find("\n" + line_start);
    if (at == std::string::npos) return 0;
    return std::stod(page.substr(page.find(' ', at + 1 + line_start.size())));
  }

  /// What engines announce of their KV events.
  fb::KvHealth kv_health = fb::KvHealth::Absent;
  /// Of engines announced from now on; those that only prefill or decode are of group `g`.
  fb::EngineRole role = fb::EngineRole::Aggregated;
  metrics_registry metrics;
  nats_server nats;
  std::unique_ptr<bus> outside;
  std::unique_ptr<gateway::gateway_role> gateway;

 private:
  std::unique_ptr<bus> connect(const bus_settings& to) {
    auto connected = bus::connect(to, metrics);
    REQUIRE(connected.ok());
    return *std::move(connected);
  }
  static http::task<result<http::response>> fetch(http::worker& on, http::origin to, std::string method,
                                                  std::string target, std::string body, http::fields headers) {
    const http::outgoing what{method, target, std::move(headers), body};
    http::call_options options;
    options.response_timeout = options.idle_timeout = 15s;
    co_return co_await on.upstream().fetch(to, what, options);
  }

  std::unique_ptr<bus> bus_;
  actor_config config_;
  caf::actor_system system_;
  std::optional<runtime> process_;
  http::io_threads clients_;
  std::uint64_t sequence_ = 0;
};

/// Answers route queries with instances in a fixed order, or not at all.
class fake_router {
 public:
  struct target {
    std::string instance;
    std::string url;
    std::uint32_t overlap = 0;
    /// URL of the engine `prefill-of-<instance>` that computes the prompt, both in group `g`.
    std::string prefill_url = {};
  };
  fake_router(bus& on, std::vector<target> ranked, bool silent = false) : on_(on), ranked_(std::move(ranked)) {
    auto made = on.subscribe(on.names().any_route_query(), {lane::rpc, "router", 64},
                             [this, silent](inbound<fb::RouteQuery>&& query) {
                               ++queries;
                               items += query.message->items()->size();
                               if (!silent) answer(query);
                             });
    REQUIRE(made.ok());
    subscription_ = *std::move(made);
    // Once a query sent behind it has come, everybody's queries will. Just after a reconnect one may be lost.
    const auto ask = [&on] {
      on.request<fb::RouteDecision>(on.names().route_query("m"), gateway::encode_route_query("test", 1, 1, "m", {}), 2s,
                                    [](auto&&) {});
    };
    const auto came = [this] { return queries == 1; };
    ask();
    if (!eventually(came, 3s)) {
      ask();
      REQUIRE(eventually(came));
    }
    queries = 0;
  }
  /// Takes queries by this name as well, and says so.
  void call_itself(const std::string& name) {
    auto made = on_.subscribe(on_.names().any_route_query_of(name), {lane::rpc, {}, 64},
                              [this](inbound<fb::RouteQuery>&& query) {
                                ++by_name;
                                answer(query);
                              });
    REQUIRE(made.ok());
    named_ = *std::move(made);
    announce(name, false);
  }
  void announce(const std::string& name, bool leaving) {
    fb::RouterAnnounceT said;
    said.origin = std::make_unique<fb::OriginT>();
    said.origin->epoch = 1;
    said.router = name;
    said.leaving = leaving;
    CHECK(on_.publish(on_.names().router_announce(name), encode(said), lane::rpc) == errc::none);
  }
  /// Nobody listens to its name any more, which it does not say.
  void lose_name() { named_ = {}; }
  std::atomic<unsigned> by_name{0};
  std::atomic<unsigned> queries{0};
  std::atomic<unsigned> items{0};
  std::vector<std::uint64_t> last_keys() {
    const std::lock_guard lock(guard_);
    return keys_;
  }

 private:
  void answer(const inbound<fb::RouteQuery>& query) {
    fb::RouteDecisionT out;
    out.model = text(query.message->model());
    for (const auto* item : *query.message->items()) {
      const auto excluded = [item](const target& t) {
        for (const auto* name : *item->exclude()) {
          if (text(name) == t.instance) return true;
        }
        return false;
      };
      auto& choice = *out.choices.emplace_back(std::make_unique<fb::RouteChoiceT>());
      choice.request_id = text(item->request_id());
      choice.reason = "no engine of this model is ready";
      choice.index_used = true;
      choice.block_size = item->block_size();
      for (const auto& t : ranked_) {
        if (excluded(t)) continue;
        if (choice.instance.empty()) {
          choice.instance = t.instance;
          choice.url = t.url;
          choice.overlap_blocks = t.overlap;
          choice.reason = "kv-aware: test";
          if (!t.prefill_url.empty()) {
            choice.prefill_instance = "prefill-of-" + t.instance;
            choice.prefill_url = t.prefill_url;
            choice.pd_group = "g";
          }
        }
        auto& c = *choice.candidates.emplace_back(std::make_unique<fb::CandidateT>());
        c.instance = t.instance;
        c.url = t.url;
        c.overlap_blocks = t.overlap;
      }
      const auto keys = elements(item->keys());
      const std::lock_guard lock(guard_);
      keys_.assign(keys.begin(), keys.end());
    }
    on_.reply(query, message_traits<fb::RouteDecision>::root, encode(out));
  }

  bus& on_;
  std::vector<target> ranked_;
  std::mutex guard_;
  std::vector<std::uint64_t> keys_;
  subscription subscription_;
  subscription named_;
};

inline std::string header(const http::response& of, std::string_view name) {
  return std::string(http::find(of.headers, name));
}

}  // namespace infernex::test
