#pragma once

#include <atomic>
#include <chrono>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <vector>

#include "actors/proxy/pair_breaker.hpp"
#include "actors/proxy/protocol.hpp"
#include "messages/result.hpp"

namespace infernex::proxy {

/// What a proxy has under way at an engine; shared by all threads. Load is in thousandths of vllm-ascend's scores.
struct engine_load {
  std::atomic<std::int64_t> requests{0};
  /// Being computed; and blocks held until decode has fetched them (prefill only).
  std::atomic<std::int64_t> active{0};
  std::atomic<std::int64_t> held{0};
  /// It has refused a connection since the last tick or announced change: others first. Else a dead engine, idle as it
  /// is, would be the first choice of every request until its agent has noticed.
  std::atomic<bool> refuses{false};
};

struct group_member {
  engine_ref engine;
  fb::EngineRole role = fb::EngineRole::Prefill;
  fb::EngineState state = fb::EngineState::Unknown;
  bool draining = false;
  /// Nobody announces it: whether it is ready, a probe tells.
  bool probed = false;
  std::string model;
  fb::KvProtocol protocol = fb::KvProtocol::None;
  std::string connector;
  std::shared_ptr<engine_load> load = std::make_shared<engine_load>();

  bool usable() const { return state == fb::EngineState::Ready && !draining; }
};

/// A pair that has failed since it last worked.
struct pair_state {
  std::string prefill;
  std::string decode;
  fb::Breaker breaker = fb::Breaker::Closed;
  std::uint32_t failures = 0;
  std::optional<clock_point> reopens;
  /// Of a half-open pair: its one trial has been taken.
  std::shared_ptr<std::atomic<bool>> trial = std::make_shared<std::atomic<bool>>(false);
};

/// The group as the I/O threads see it.
struct group_view {
  std::vector<group_member> members;
  std::vector<pair_state> pairs;

  std::size_t usable(fb::EngineRole role) const;
  const group_member* find(fb::EngineRole role, std::string_view address) const;
  std::vector<std::string> addresses(fb::EngineRole role) const;
  bool has_failed(const std::string& prefill, const std::string& decode) const;
};

struct group_settings {
  std::string name = "default";
  /// None: as the group's prefill engines announce.
  fb::KvProtocol protocol = fb::KvProtocol::None;
  /// `host:port` each; known by probing, not by announcements.
  std::vector<std::string> prefill;
  std::vector<std::string> decode;
  /// Of engines that announce none; for the static ones.
  std::optional<std::uint16_t> bootstrap_port;
  std::chrono::milliseconds silence{6'000};
  std::uint32_t max_engines = 256;
  breaker_limits breaker;
};

/// Who belongs to a PD group. Engines come from announcements (by pd_group and role) and from a list that operators
/// can change; the latter count as ready once they have answered a probe.
class group {
 public:
  explicit group(group_settings how);

  /// Each: whether the view has changed.
  bool on_announce(const fb::EngineAnnounce& engine, clock_point now);
  bool on_probe(const std::string& address, bool healthy);
  /// A request at the pair has ended; addresses of its engines.
  bool on_outcome(const std::string& prefill, const std::string& decode, bool worked, clock_point now);
  bool on_tick(clock_point now, bool bus_is_there);

  /// Errors: invalid_request (no `host:port`), not_found, overloaded.
  error add(fb::EngineRole role, std::string_view address);
  error remove(fb::EngineRole role, std::string_view address);
  error drain(fb::EngineRole role, std::string_view address);

  std::shared_ptr<const group_view> view();
  /// All announced engines are of one model, the first one's; empty: none is announced. Others are refused.
  std::string_view model() const;
  const group_settings& settings() const { return how_; }
  const pair_breaker& breakers() const { return breaker_; }
  std::uint64_t refused() const { return refused_; }

 private:
  struct record {
    group_member is;
    bool listed = false;
    bool announced = false;
    bool leaving = false;
    clock_point heard;
  };
  record* find(fb::EngineRole role, std::string_view address);

  group_settings how_;
  /// By instance; of those that were never announced, the address.
  std::map<std::string, record> members_;
  /// Addresses that were removed and are still announced, or were until lately; and when.
  std::map<std::string, clock_point> banned_;
  clock_point now_{};
  pair_breaker breaker_;
  std::map<pair_breaker::pair_name, std::shared_ptr<std::atomic<bool>>> trials_;
  std::uint64_t refused_ = 0;
};

/// `host:port` of `host:port` or `http://host:port[/]`. Errors: invalid_request.
result<std::string> address_of(std::string_view text);

}  // namespace infernex::proxy
