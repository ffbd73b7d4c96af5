#pragma once

#include <atomic>
#include <functional>
#include <memory>
#include <string>

#include "actors/actors.hpp"
#include "actors/proxy/group.hpp"
#include "actors/proxy/settings.hpp"
#include "actors/runtime/role.hpp"
#include "messages/published.hpp"

namespace infernex::proxy {

struct pair_outcome {
  std::string prefill;
  std::string decode;
  bool worked = false;
};

struct probe_result {
  std::string address;
  bool healthy = false;
};

struct group_change {
  fb::PdAction action = fb::PdAction::Add;
  fb::EngineRole role = fb::EngineRole::Prefill;
  std::vector<std::string> engines;
  /// Called once on the actor's thread; an error of the first engine that could not be changed, else none.
  std::function<void(error)> done;
};

/// What the proxy knows and has counted. Only the actor's present incarnation changes the group; the counts are every
/// thread's. Lives on when the actor is restarted.
struct proxy_facts {
  proxy_facts(const runtime& process, const settings& how)
      : members(how.group), source("proxy/" + process.process), epoch(process.epoch) {
    view.publish(members.view());
  }
  group members;
  published<group_view> view;
  std::string source;
  std::uint64_t epoch;
  std::uint64_t sequence = 0;
  /// How others reach the proxy; empty until it listens.
  std::string url() const { return listens.load(std::memory_order_acquire) ? own_url : std::string(); }
  std::string own_url;
  std::atomic<bool> listens{false};

  std::atomic<std::uint32_t> in_flight{0};
  std::atomic<std::uint64_t> answered{0};
  std::atomic<std::uint64_t> failed{0};
  std::atomic<std::uint64_t> prefilled_locally{0};
  std::atomic<std::uint64_t> migrated{0};
};

/// Keeps the group's membership and breakers, and says on the bus how it is.
proxy_actor spawn_proxy_actor(const runtime& process, const settings& how, std::shared_ptr<proxy_facts> facts);

}  // namespace infernex::proxy
