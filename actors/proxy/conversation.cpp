#include "actors/proxy/conversation.hpp"

#include <algorithm>

namespace infernex::proxy {
namespace {

void append(actions& to, actions more) {
  to.insert(to.end(), std::make_move_iterator(more.begin()), std::make_move_iterator(more.end()));
}

/// A status that is about the request itself; others another engine may do better.
bool clients_fault(unsigned status) { return status >= 400 && status < 500 && status != 408 && status != 429; }

}  // namespace

conversation::conversation(const conversation_settings& how, request_facts facts, std::string_view body)
    : how_(how), facts_(std::move(facts)), original_(body), answer_(facts_) {}

const engine_ref& conversation::engine(leg which) const {
  return which == leg::prefill && at_.pair.prefill ? *at_.pair.prefill : at_.pair.decode;
}

actions conversation::start() {
  actions out;
  out.emplace_back(wish_);
  return out;
}

actions conversation::on_pair(engine_pair pair, std::unique_ptr<protocol> by, std::string id, std::uint64_t random,
                              std::string metaserver, std::string bootstrap) {
  if (over_) return {};
  auto body = answer_.next_body(original_);
  if (!body) return fail(502, "cannot_continue", "its answer cannot be continued: " + std::string(answer_.obstacle()));
  ++number_;
  ++attempts_;
  wish_.wait = false;
  tokens_before_ = answer_.tokens();
  from_memory_ = !bootstrap.empty();
  at_ = {facts_, *std::move(body), std::move(pair), std::move(id), random, std::move(metaserver), std::move(bootstrap)};
  protocol_ = at_.pair.prefill ? std::move(by) : nullptr;
  prefill_running_ = prefill_done_ = decode_running_ = fetched_ = told_worked_ = false;
  events_.clear();
  local_ = !protocol_;
  if (protocol_) return run(protocol_->begin(at_));
  decode_running_ = true;
  actions out;
  out.emplace_back(action::send{leg::decode, {plain_body(at_.body), {}}});
  return out;
}

/// As soon as it is known, not when the answer ends: others wait for the outcome of a trial.
void conversation::tell_worked(actions& out) {
  if (!std::exchange(told_worked_, true)) out.emplace_back(action::report{at_.pair, true});
}

/// The decode engine has answered to the end.
void conversation::succeed(actions& out) {
  decode_running_ = false;
  over_ = true;
  tell_worked(out);
  // It may be done before the prefill that it asked for has said so.
  if (asks_metaserver() && !prefill_done_) out.emplace_back(action::answer_metaserver{200, R"({"status":"ok"})"});
}

actions conversation::on_no_pair(std::string_view reason, bool may_wait) {
  if (over_) return {};
  if (may_wait && (story_.empty() || !gone_.empty())) {
    const auto is_back = [this](const std::string& one) {
      return std::find(gone_.begin(), gone_.end(), one) != gone_.end();
    };
    std::erase_if(wish_.avoid_prefills, is_back);
    std::erase_if(wish_.avoid_decodes, is_back);
    wish_.wait = true;
    actions out;
    out.emplace_back(wish_);
    return out;
  }
  if (story_.empty())
    return fail(503, "no_engine_ready", "No pair of engines can take the request now: " + std::string(reason));
  return fail(last_timed_out_ ? 504 : 502, "engines_failed", failure_text());
}

/// Carries out what the protocol wants.
actions conversation::run(step next) {
  actions out;
  if (!next.problem.empty()) return another(leg::prefill, {std::move(next.problem)});
  if (next.query_bootstrap) {
    // A call to the prefill engine, to be broken off like its leg.
    prefill_running_ = true;
    out.emplace_back(action::query_bootstrap{});
  }
  if (next.prefill) {
    prefill_running_ = true;
    out.emplace_back(action::send{leg::prefill, *std::move(next.prefill)});
  }
  if (next.decode) {
    decode_running_ = true;
    out.emplace_back(action::send{leg::decode, *std::move(next.decode)});
  }
  return out;
}

actions conversation::on_bootstrap(unsigned attempt, const std::variant<std::string, leg_failure>& outcome) {
  if (stale(attempt)) return {};
  prefill_running_ = false;
  if (const auto* failed = std::get_if<leg_failure>(&outcome)) return another(leg::prefill, *failed);
  return run(protocol_->on_bootstrap(at_, std::get<std::string>(outcome)));
}

actions conversation::on_prefill_answer(unsigned attempt, unsigned status, std::string_view body) {
  if (stale(attempt) || !prefill_running_) return {};
  if (fetched_ && status != 200) {  // decode has what it needs of it
    prefill_running_ = false;
    return {};
  }
  if (clients_fault(status)) {
    prefill_running_ = false;
    actions out;
    if (answer_.begun() || !answer_.generated().empty())
      return another(leg::prefill, {"answered " + std::to_string(status)});
    end_attempt(out);
    over_ = true;
    out.emplace_back(action::answer{status, std::string(body)});
    return out;
  }
  if (status != 200) return another(leg::prefill, {"answered " + std::to_string(status)});
  prefill_running_ = false;
  prefill_done_ = true;
  answer_.note_prefill(body);
  actions out;
  if (protocol_->asks_metaserver()) out.emplace_back(action::answer_metaserver{200, R"({"status":"ok"})"});
  append(out, run(protocol_->on_prefill(at_, body)));
  return out;
}

actions conversation::on_metaserver(unsigned attempt, std::string_view request_id, std::string_view params) {
  if (stale(attempt) || !protocol_) return {};
  return run(protocol_->on_metaserver(at_, request_id, params));
}

actions conversation::on_decode_answer(unsigned attempt, unsigned status, std::string_view body) {
  if (stale(attempt) || !decode_running_) return {};
  if (status != 200 && !clients_fault(status)) return another(leg::decode, {"answered " + std::to_string(status)});
  decode_running_ = false;
  // What it has refused, it has not fetched.
  fetched_ = status == 200;
  actions out;
  if (status != 200) {
    // In the middle of an answer this is no answer.
    if (answer_.begun() || !answer_.generated().empty())
      return another(leg::decode, {"answered " + std::to_string(status)});
    end_attempt(out);
    over_ = true;
    out.emplace_back(action::answer{status, std::string(body)});
    return out;
  }
  std::string whole;
  const auto s = answer_.take_whole(body, whole);
  if (s.recomputed) return give_back(std::move(out));
  first_token_ = true;
  succeed(out);
  out.emplace_back(action::answer{200, std::move(whole)});
  return out;
}

actions conversation::on_decode_piece(unsigned attempt, std::string_view piece) {
  if (stale(attempt) || !decode_running_) return {};
  actions out;
  action::forward on;
  seen last;
  events_.feed(piece);
  while (const auto event = events_.next()) {
    last = answer_.take_event(*event, on.bytes);
    if (last.output) first_token_ = fetched_ = true;
    if (last.complete || last.recomputed || !last.failure.empty()) break;
  }
  on.last = last.complete;
  if (fetched_) tell_worked(out);
  if (last.complete) succeed(out);
  if (!on.bytes.empty() || on.last) out.emplace_back(std::move(on));
  if (last.recomputed) {
    out.emplace_back(action::cancel{leg::decode});
    decode_running_ = false;
    return give_back(std::move(out));
  }
  if (!last.failure.empty() || events_.overflown()) {
    auto why = last.failure.empty() ? "sent an event too large" : "said: " + last.failure.substr(0, 200);
    append(out, another(leg::decode, {std::move(why)}));
  }
  return out;
}

actions conversation::on_decode_end(unsigned attempt) {
  if (stale(attempt) || !decode_running_) return {};
  if (!answer_.finished()) return another(leg::decode, {"ended its stream early"});
  actions out;
  succeed(out);
  out.emplace_back(action::forward{{}, true});
  return out;
}

actions conversation::on_leg_failed(unsigned attempt, leg which, const leg_failure& how) {
  if (stale(attempt)) return {};
  if (which == leg::prefill ? !prefill_running_ : !decode_running_) return {};
  // Decode has all it needs once it generates; an answer that prefill can no longer give is missed by nobody.
  if (which == leg::prefill && fetched_) {
    prefill_running_ = false;
    return {};
  }
  // The answer was whole but for its last words.
  if (which == leg::decode && answer_.finished()) return on_decode_end(attempt);
  return another(which, how);
}

actions conversation::on_client_gone() {
  actions out;
  if (!std::exchange(over_, true)) end_attempt(out);
  return out;
}

actions conversation::on_deadline(bool blame) {
  if (over_) return {};
  actions out;
  if (blame && (prefill_running_ || decode_running_))
    out.emplace_back(action::report{at_.pair, false, decode_running_ ? leg::decode : leg::prefill});
  return fail(504, "timeout",
              "The answer was not complete in time; the request was cancelled." +
                  (story_.empty() ? std::string() : " Before: " + story_),
              std::move(out));
}

}  // namespace infernex::proxy
