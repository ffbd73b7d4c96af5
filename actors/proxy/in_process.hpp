#pragma once

#include <chrono>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <string_view>

#include "actors/proxy/exchange.hpp"
#include "actors/runtime/metrics.hpp"
#include "messages/published.hpp"

namespace infernex::proxy {

/// Hears what becomes of a request at pairs, on its thread.
class pair_listener {
 public:
  virtual ~pair_listener() = default;
  /// It goes to these engines from now on, by their instances; `prefill` empty: to the decode engine alone.
  virtual void on_pair(std::string_view prefill, std::string_view decode) = 0;
  /// The prefill leg has ended.
  virtual void on_prefilled() = 0;
};

/// A request for a pair, or a decode engine, that somebody else has chosen.
struct named_request {
  api kind = api::chat;
  /// Of the engines: `/v1/chat/completions`.
  std::string target;
  std::string request_id;
  std::string group;
  /// Instances. `prefill` empty: whichever has the least load, or, `alone`, the decode engine itself.
  std::string prefill;
  std::string decode;
  bool alone = false;
};

struct named_result {
  /// Of the two, nothing has begun: what is wrong with the body, for the client; or why the pair cannot be used.
  std::string bad_body;
  std::string unknown;
  exchange_result ended;
};

/// What a proxy does, for a process that chooses pairs itself and has I/O threads of its own: the groups come from
/// announcements, as many as there are. Membership and breakers are behind a lock that is taken for announcements and
/// failures; requests read snapshots. Must outlive the threads' coroutines.
class in_process {
 public:
  struct settings {
    /// For each group; its name is the group's own, and engines are not listed.
    group_settings group;
    exchange_settings exchange;
    std::size_t max_groups = 256;
  };
  in_process(metrics_registry& metrics, settings how);

  void on_announce(const fb::EngineAnnounce& engine, clock_point now);
  void on_tick(clock_point now, bool bus_is_there);
  /// Base URL at which decode engines reach serve_metaserver(), once it can be reached; the first call counts.
  void reached_at(std::string url);
  http::task<void> serve_metaserver(http::worker& on, http::request& in, http::responder& out);

  using group_views = std::map<std::string, std::shared_ptr<const group_view>, std::less<>>;

  /// One I/O thread's part of it.
  class thread {
   public:
    thread(in_process& all, http::worker& on) : all_(all), on_(on), views_(all.views_) {}
    /// Runs the request to its end, first at the engines it names. `heard` is called until then.
    http::task<named_result> run(named_request what, http::request& in, http::responder& out, pair_listener& heard);

    std::shared_ptr<const group_view> view(std::string_view group);
    in_process& all() { return all_; }

   private:
    in_process& all_;
    http::worker& on_;
    bootstrap_memory bootstraps_;
    published<group_views>::reader views_;
  };

  void on_outcome(const std::string& group, const std::string& prefill, const std::string& decode, bool worked);
  bool local_prefill() const { return how_.exchange.tries.local_prefill; }

 private:
  void publish_locked(const std::string& name, group& changed);
  void count_locked();

  const settings how_;
  exchange_metrics metrics_;
  prometheus::Counter& openings_;
  prometheus::Counter& refused_announcements_;
  metaserver meta_;
  std::string url_;
  std::atomic<bool> reachable_{false};

  std::mutex guard_;
  std::map<std::string, group, std::less<>> groups_;
  group_views latest_;
  /// Of groups that have gone.
  std::uint64_t opened_before_ = 0;
  std::uint64_t refused_before_ = 0;
  published<group_views> views_;
};

}  // namespace infernex::proxy
