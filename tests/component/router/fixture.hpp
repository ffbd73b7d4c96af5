#pragma once

// A router over a real nats-server; agents and indexers exist on the bus only.

#include <chrono>
#include <future>
#include <memory>
#include <string>
#include <vector>

#include <doctest/doctest.h>

#include "actors/router/actor.hpp"
#include "tests/component/indexer/fake_agent.hpp"
#include "tests/support/nats_server.hpp"
#include "tests/support/wait.hpp"

namespace infernex::test {

using namespace std::chrono_literals;

inline std::unique_ptr<bus> connect(const test::nats_server& server, metrics_registry& metrics) {
  bus_settings how;
  how.url = server.url();
  how.reconnect_wait = 50ms;
  auto made = bus::connect(how, metrics);
  REQUIRE(made);
  return *std::move(made);
}

inline const std::vector<std::uint64_t> prompt_keys{11, 12, 13, 14};

struct router_setup {
  test::nats_server server;
  metrics_registry metrics;
  std::unique_ptr<bus> outside = connect(server, metrics);
  std::unique_ptr<bus> inside = connect(server, metrics);
  actor_config config;
  caf::actor_system system{config};
  runtime process{system, *inside, metrics, "test-1", 1};
  std::unique_ptr<role> router;
  subscription indexer;
  fake_agent first{*outside, "m", "e0"};
  fake_agent second{*outside, "m", "e1"};
  unsigned asked = 0;

  explicit router_setup(router::settings how = {}) {
    auto made = router::start(process, how);
    REQUIRE(made);
    router = *std::move(made);
  }
  ~router_setup() {
    router->stop(2s);
    router.reset();
    indexer = {};
    outside->close(1s);
    inside->close(1s);
  }
  /// Answers every chain alike: `instance` holds its first `blocks`.
  void start_indexer(const std::string& instance, std::uint32_t blocks) {
    auto made = outside->subscribe(outside->names().any_kv_match(), {lane::rpc, "indexer", 64},
                                   [this, instance, blocks](inbound<fb::KvMatchQuery>&& query) {
                                     fb::KvMatchReplyT reply;
                                     reply.origin = std::make_unique<fb::OriginT>();
                                     reply.coverage.push_back(std::make_unique<fb::KvCoverageT>());
                                     for (std::size_t i = 0; i < query.message->chains()->size(); ++i) {
                                       auto& match = *reply.matches.emplace_back(std::make_unique<fb::KvMatchT>());
                                       auto& one = *match.overlaps.emplace_back(std::make_unique<fb::KvOverlapT>());
                                       one.instance = instance;
                                       one.blocks = blocks;
                                     }
                                     outside->reply(query, message_traits<fb::KvMatchReply>::root, encode(reply));
                                   });
    REQUIRE(made);
    indexer = *std::move(made);
  }
  void announce() {
    first.announce();
    second.announce();
  }

  /// The answer, or the error the router refused with.
  result<fb::RouteDecisionT> ask(std::size_t items = 1, const std::string& model = "m") {
    return put(query(items, model));
  }
  fb::RouteQueryT query(std::size_t items, const std::string& model) {
    fb::RouteQueryT query;
    query.model = model;
    for (std::size_t i = 0; i < items; ++i) {
      auto& item = *query.items.emplace_back(std::make_unique<fb::RouteItemT>());
      item.request_id = "r" + std::to_string(++asked);
      item.key_mode = fb::KeyMode::Token;
      item.prompt_tokens = 70;
      item.block_size = 16;
      item.keys = prompt_keys;
    }
    return query;
  }
  result<fb::RouteDecisionT> put(const fb::RouteQueryT& query) {
    auto done = std::make_shared<std::promise<result<fb::RouteDecisionT>>>();
    auto future = done->get_future();
    outside->request<fb::RouteDecision>(outside->names().route_query(query.model), encode(query), 2s,
                                        [done](result<view<fb::RouteDecision>>&& reply) {
                                          if (!reply) return done->set_value(reply.failure());
                                          fb::RouteDecisionT out;
                                          (**reply).UnPackTo(&out);
                                          done->set_value(std::move(out));
                                        });
    if (future.wait_for(5s) != std::future_status::ready) return errc::timed_out;
    return future.get();
  }
  bool ready() {
    announce();
    const auto got = ask();
    return got && !got->choices.empty() && got->choices[0]->candidates.size() == 2;
  }
};

/// What the index and the measured loads say, and nothing else: `infernex` goes by what it has placed itself.
inline router::settings without_predictions() {
  router::settings how;
  how.policy.strategy = "kv-aware";
  how.prediction.enabled = false;
  return how;
}

}  // namespace infernex::test
