#pragma once

#include <memory>
#include <set>
#include <string>

#include "actors/proxy/actor.hpp"
#include "actors/proxy/exchange.hpp"
#include "actors/runtime/supervisor.hpp"

namespace infernex::proxy {

/// What all threads of a proxy share.
struct proxy_shared {
  proxy_shared(const runtime& process_, const settings& how_)
      : how(how_), process(process_), facts(std::make_shared<proxy_facts>(process, how)), metrics(process.metrics) {}
  const settings how;
  runtime process;
  std::shared_ptr<proxy_facts> facts;
  exchange_metrics metrics;
  metaserver meta;
  current_actor<proxy_actor> actor;
};

/// One I/O thread's own things. Used on that thread only.
class hand {
 public:
  hand(proxy_shared& all, http::worker& on) : shared(all), worker(on), view_(all.facts->view) {}

  proxy_shared& shared;
  http::worker& worker;
  bootstrap_memory bootstraps;
  /// Engines that are being asked for their health.
  std::set<std::string> probing;

  /// Hold it across co_await.
  std::shared_ptr<const group_view> view() { return view_.shared(); }

 private:
  published<group_view>::reader view_;
};

/// The pairs of the hand's group, for one request.
std::shared_ptr<pair_source> make_group_pairs(hand& at, named_pair named, std::size_t prompt_bytes);

/// Answers POST /v1/chat/completions and /v1/completions.
http::task<void> serve_completion(hand& at, api kind, http::request& in, http::responder& out);
/// Asks the listed engines for their health, again and again.
http::task<void> probe_listed(hand& at);
/// The metrics pages of the group's engines as one.
http::task<std::string> scrape_group(hand& at);

// What operators ask for.
http::task<void> serve_models(hand& at, http::request& in, http::responder& out);
http::task<void> serve_healthcheck(hand& at, http::request& in, http::responder& out);
http::task<void> serve_add(hand& at, http::request& in, http::responder& out);
http::task<void> serve_remove(hand& at, http::request& in, http::responder& out);

/// Whatever comes.
http::task<void> dispatch(hand& at, http::request& in, http::responder& out);

/// An error in OpenAI's shape.
http::task<void> send_error(http::responder& out, unsigned status, std::string message, std::string code);

}  // namespace infernex::proxy
