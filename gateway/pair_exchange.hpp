#pragma once

#include <memory>
#include <string>
#include <string_view>

#include "actors/runtime/http/server.hpp"
#include "gateway/choice.hpp"
#include "gateway/life.hpp"
#include "gateway/openai_request.hpp"

namespace infernex::gateway {

/// Hears what becomes of a request at pairs, on its thread.
class pair_listener {
 public:
  virtual ~pair_listener() = default;
  /// It goes to these engines from now on, by their instances; `prefill` empty: to the decode engine alone.
  virtual void on_pair(std::string_view prefill, std::string_view decode) = 0;
  /// The prefill engine has nothing more to compute for it.
  virtual void on_prefilled() = 0;
};

/// What became of a request at pairs.
struct pair_result {
  /// Nothing was begun: what is wrong with the body, for the client; or why the pair cannot be used, for people.
  std::string bad_body;
  std::string unusable;
  bool client_gone = false;
  /// No pair could answer it to its end, of which the client was told; and what failed on the way.
  bool failed = false;
  std::string story;
};

/// Runs requests of one I/O thread at pairs of engines (`pd: embedded`).
class pair_exchange {
 public:
  virtual ~pair_exchange() = default;
  /// Answers `in` by `to`, a pair or a decode engine of a group, and where that fails by other pairs of the group.
  /// `target`: path and query for the engines. The arguments live until the task has ended; `heard` is called until
  /// then.
  virtual http::task<pair_result> run(api kind, const candidate& to, const std::string& target,
                                      const std::string& request_id, http::request& in, http::responder& out,
                                      pair_listener& heard) = 0;
};

/// All threads' together: follows the PD groups' engines. Thread-safe, and outlives the threads.
class pair_exchanges {
 public:
  virtual ~pair_exchanges() = default;
  virtual std::unique_ptr<pair_exchange> for_thread(http::worker& on) = 0;
  virtual void on_announce(const fb::EngineAnnounce& engine, clock_point now) = 0;
  /// Once a second.
  virtual void on_tick(clock_point now, bool bus_is_there) = 0;
  /// Base URL under which engines reach the gateway, from when on it can be reached.
  virtual void reached_at(std::string url) = 0;
  /// Answers POST /v1/metaserver: a decode engine asks for its prefill.
  virtual http::task<void> serve_metaserver(http::worker& on, http::request& in, http::responder& out) = 0;
};

}  // namespace infernex::gateway
