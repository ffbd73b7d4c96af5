#pragma once

#include <functional>
#include <memory>
#include <optional>
#include <string>

#include "gateway/answers.hpp"
#include "gateway/hand.hpp"
#include "gateway/usage_scan.hpp"

namespace infernex::gateway {

/// One chat or completions request from its admission to its end. Lives in its coroutine; the client-gone
/// call-back and the deadline refer to it weakly.
struct session {
  session(hand& h, api k, http::request& request, http::responder& way_back)
      : at(h),
        kind(k),
        in(request),
        out(way_back),
        wake(h.worker.context()),
        deadline(h.worker.context().get_executor()) {}

  hand& at;
  const api kind;
  http::request& in;
  http::responder& out;
  std::string request_id;

  openai_request body;
  std::shared_ptr<const router::topology> topology;
  /// Points into `topology`.
  const router::model_endpoints* model = nullptr;
  route_request where;
  /// How the prompt's tokens were found: render, tokenize, text, given, cache.
  std::string_view tokens_by = "text";
  /// Why the request goes where it goes, or nowhere; and the same with what belongs to it, for the header.
  std::string reason;
  std::string decision;
  bool index_used = false;
  /// Every engine is saturated, and it is to wait no longer.
  std::optional<shed_request> shed;

  waiter wake;
  worker_timer deadline;
  clock_point ends_at;
  http::cancel_source upstream;
  /// Told besides when the client has gone.
  std::function<void()> also_gone;
  bool client_gone = false;
  /// The deadline has passed before the answer (or the stream's first event) was there.
  bool too_late = false;

  // What the finished-request record is made of.
  std::uint32_t attempt = 1;
  std::string instance;
  /// Of a pair; empty: `instance` computes the prompt too.
  std::string prefill_instance;
  /// By an engine that a proxy has chosen.
  bool prefilled_somewhere = false;
  /// Of pairs that failed; what relayed::failure points to.
  std::string pair_story;
  unsigned status = 0;
  fb::Outcome outcome = fb::Outcome::Rejected;
  /// Leading blocks expected in the engine's cache, if anything was known of it; and whether by prediction.
  std::optional<std::uint32_t> expected_blocks;
  bool by_prediction = false;
  usage used;
  std::optional<std::chrono::steady_clock::duration> ttft;
  std::optional<router::speed_conditions> met;
  std::optional<router::speed_conditions> met_at_prefill;

  bool given_up() const { return client_gone || too_late; }
};

/// Answers `POST /v1/chat/completions` or `/v1/completions`. `upstream_path`: what the engine is asked for.
http::task<void> serve_completion(hand& at, api kind, std::string_view upstream_path, http::request& in,
                                  http::responder& out);

/// The topology of now: an engine may have gone, or come, while the request was on its way.
void refresh_topology(session& s);

/// Sends an error in OpenAI's shape.
http::task<void> send_answer(http::responder& out, const answer& what, http::fields extra = {});

}  // namespace infernex::gateway
