#pragma once

#include <memory>
#include <optional>
#include <string>
#include <string_view>

#include "actors/proxy/bootstrap_memory.hpp"
#include "actors/proxy/choose.hpp"
#include "actors/proxy/exchange_settings.hpp"
#include "actors/proxy/metaserver.hpp"
#include "actors/proxy/metrics.hpp"
#include "actors/runtime/http/client.hpp"
#include "actors/runtime/http/server.hpp"

namespace infernex::proxy {

/// Who names the pairs for one request, on the request's thread. Lives until all that was begun for it has ended,
/// which may be after the answer.
class pair_source {
 public:
  virtual ~pair_source() = default;
  virtual http::task<std::variant<chosen_pair, no_pair>> choose(const action::choose_pair& wish) = 0;
  virtual void report(const action::report& what) = 0;
  // For who counts the engines' load elsewhere.
  /// The request goes to this pair from now on.
  virtual void on_taken(const engine_pair& /*pair*/) {}
  /// Its prefill leg has ended.
  virtual void on_prefilled() {}
};

/// One request by a transfer protocol. What it refers to outlives the worker's coroutines.
struct exchange_plan {
  request_facts facts;
  /// Of the engines: `/v1/chat/completions`.
  std::string target;
  /// Of the client's answer; empty: one is made up.
  std::string request_id;
  std::shared_ptr<pair_source> pairs;
  const exchange_settings* how = nullptr;
  exchange_metrics* metrics = nullptr;
  /// This thread's.
  bootstrap_memory* bootstraps = nullptr;
  /// Null: the layer-wise protocol cannot be spoken. With the URL under which decode engines reach it.
  metaserver* meta = nullptr;
  std::string metaserver_url;
  /// From when on time counts as added to the legs'; unset: from the request's first byte.
  std::optional<std::chrono::steady_clock::time_point> began = {};
};

/// What became of it.
struct exchange_result {
  outcome how = outcome::failed;
  /// 499: the client left before its answer began.
  unsigned status = 0;
  std::optional<std::chrono::steady_clock::duration> ttft;
  std::uint32_t retries = 0;
  std::uint32_t migrations = 0;
  bool prefilled_locally = false;
  /// What failed on the way, for people.
  std::string story;
  /// The engines that answered, or were tried last.
  engine_pair pair;
};

/// Runs a request on the worker's thread to its end: sends both legs, relays the stream, and when either fails, does
/// what the conversation says. Counts it in the metrics.
http::task<exchange_result> run_exchange(exchange_plan plan, http::worker& on, http::request& in, http::responder& out);

}  // namespace infernex::proxy
