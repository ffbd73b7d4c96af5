// What a conversation does when an attempt has failed, or is given back.

#include <algorithm>

#include "actors/proxy/conversation.hpp"

namespace infernex::proxy {
namespace {

/// While a request waits for a pair, many may fail.
constexpr std::size_t longest_story = 1'000;

void add_once(std::vector<std::string>& to, const std::string& what) {
  if (std::find(to.begin(), to.end(), what) == to.end()) to.push_back(what);
}

}  // namespace

/// Breaks off what runs.
void conversation::end_attempt(actions& out) {
  if (prefill_running_) out.emplace_back(action::cancel{leg::prefill});
  if (decode_running_) out.emplace_back(action::cancel{leg::decode});
  if (asks_metaserver() && !prefill_done_)
    out.emplace_back(
        action::answer_metaserver{502, R"({"error":"the prefill has failed, or is not wanted any more"})"});
  let_go(out);
  prefill_running_ = decode_running_ = false;
}

void conversation::let_go(actions& out) {
  if (!protocol_ || !prefill_done_ || fetched_) return;
  if (auto body = protocol_->release(at_))
    out.emplace_back(action::release{*std::move(body), at_.pair.decode.address, wish_.avoid_decodes});
  prefill_done_ = false;
}

void conversation::let_down(leg which, const leg_failure& how, actions& out) {
  const auto& failed = engine(which);
  if (story_.size() < longest_story) {
    if (!story_.empty()) story_ += "; ";
    story_ += (which == leg::prefill ? "prefill " : "decode ") + failed.address + ' ' + how.why;
    if (story_.size() >= longest_story) story_ += "; and so on";
  }
  last_timed_out_ = how.timed_out;
  if (how.refused || how.broke) add_once(gone_, failed.address);
  out.emplace_back(action::report{at_.pair, false, which, how.refused});
  if (at_.pair.prefill) out.emplace_back(action::forget_bootstrap{at_.pair.prefill->address});
  if (which == leg::prefill) {
    ++prefill_failures_;
    add_once(wish_.avoid_prefills, failed.address);
    wish_.prefer_decode = at_.pair.decode.address;
  } else if (std::exchange(from_memory_, false) && !how.refused && !how.timed_out) {
    // It may have asked for an engine that has been started anew: the same pair again, with what is true now.
    wish_.prefer_decode = failed.address;
  } else {
    add_once(wish_.avoid_decodes, failed.address);
    wish_.prefer_decode.clear();
  }
}

/// Those that failed before the answer got as far as it has may be back; but not `decode`, which has just failed.
void conversation::forgive(const std::string& decode) {
  wish_.avoid_prefills.clear();
  wish_.avoid_decodes.clear();
  if (!decode.empty()) wish_.avoid_decodes.push_back(decode);
  prefill_failures_ = 0;
}

actions conversation::another(leg failed, const leg_failure& how) {
  actions out;
  (failed == leg::prefill ? prefill_running_ : decode_running_) = false;
  out.emplace_back(action::cancel{failed});
  let_down(failed, how, out);
  end_attempt(out);
  // Where nobody listened nothing was lost but a moment. Each engine once, until the request waits for a pair.
  if (how.refused && attempts_ > 0) --attempts_;
  if (answer_.begun()) {
    if (!answer_.obstacle().empty())
      return fail(502, "engines_failed", failure_text() + ", and " + std::string(answer_.obstacle()), std::move(out));
  }
  if (answer_.tokens() > tokens_before_) {
    if (migrations_ == how_.max_migrations)
      return fail(last_timed_out_ ? 504 : 502, "engines_failed", failure_text(), std::move(out));
    ++migrations_;
    attempts_ = 0;
    forgive(failed == leg::decode ? at_.pair.decode.address : std::string());
  }
  const bool can_prefill_itself = !protocol_ || protocol_->decode_may_prefill();
  const bool local = how_.local_prefill && can_prefill_itself && prefill_failures_ >= how_.max_prefill_attempts;
  // One more, for decode alone, after the last of the pairs.
  if (attempts_ >= how_.max_attempts + (local && !local_ ? 1 : 0))
    return fail(last_timed_out_ ? 504 : 502, "engines_failed", failure_text(), std::move(out));
  if (answer_.tokens() <= tokens_before_) ++retries_;
  wish_.decode_only = local;
  return go_on(std::move(out));
}

/// The decode engine has given the request back.
actions conversation::give_back(actions out) {
  ++recomputes_;
  end_attempt(out);
  if (answer_.begun() && !answer_.obstacle().empty())
    return fail(502, "recomputed", "The decode engine gave the request back, and " + std::string(answer_.obstacle()),
                std::move(out));
  if (recomputes_ > how_.max_migrations)
    return fail(503, "recomputed", "Decode engines gave the request back " + std::to_string(recomputes_) + " times.",
                std::move(out));
  attempts_ = 0;
  forgive({});
  wish_.decode_only = false;
  wish_.prefer_decode.clear();
  // With the layer-wise protocol it goes back to the same engine, which has made room; else to one that has some.
  (asks_metaserver() ? wish_.prefer_decode : wish_.gave_back) = at_.pair.decode.address;
  return go_on(std::move(out));
}

actions conversation::go_on(actions out) {
  std::string waited;
  if (answer_.spent()) {
    over_ = true;
    auto end = answer_.closing();
    if (facts_.stream) {
      out.emplace_back(action::forward{std::move(end), true});
    } else {
      out.emplace_back(action::answer{200, std::move(end)});
    }
    return out;
  }
  answer_.next_engine(waited);
  if (!waited.empty()) out.emplace_back(action::forward{std::move(waited)});
  // Inputs of the attempt that has ended no longer count.
  ++number_;
  out.emplace_back(wish_);
  return out;
}

actions conversation::fail(unsigned status, std::string code, std::string message, actions out) {
  if (!over_) end_attempt(out);
  over_ = true;
  out.emplace_back(action::fail{status, std::move(code), std::move(message)});
  return out;
}

std::string conversation::failure_text() const { return "No pair of engines could answer: " + story_; }

}  // namespace infernex::proxy
