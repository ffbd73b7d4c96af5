#pragma once

#include <memory>
#include <string>
#include <variant>
#include <vector>

#include "actors/proxy/continuation.hpp"
#include "actors/proxy/event_splitter.hpp"
#include "actors/proxy/exchange_settings.hpp"
#include "actors/proxy/protocol.hpp"

namespace infernex::proxy {

enum class leg : std::uint8_t { prefill, decode };

struct leg_failure {
  /// `refused the connection`, for people.
  std::string why;
  bool timed_out = false;
  /// Nobody listens there: the engine cannot have got the request.
  bool refused = false;
  /// The connection broke: the engine may have gone, and may come back.
  bool broke = false;
};

// What a conversation wants done. In the order given.
namespace action {

/// Name a pair; answered by on_pair or on_no_pair. Engines by their address.
struct choose_pair {
  std::vector<std::string> avoid_prefills;
  std::vector<std::string> avoid_decodes;
  /// To be taken if it can be.
  std::string prefer_decode;
  /// A decode engine alone, which prefills by itself.
  bool decode_only = false;
  /// There was none just now: after a moment.
  bool wait = false;
  /// This decode engine has just had no room: others first.
  std::string gave_back = {};
};
struct query_bootstrap {};
/// What is known of this engine's bootstrap endpoint is not to be used again.
struct forget_bootstrap {
  std::string address;
};
struct send {
  leg to;
  outgoing_leg what;
};
struct cancel {
  leg which;
};
/// To all decode engines' calls for this attempt.
struct answer_metaserver {
  unsigned status;
  std::string body;
};
/// To a decode engine, which is to be left as soon as it has it; another than those to avoid.
struct release {
  outgoing_leg what;
  std::string decode;
  std::vector<std::string> avoid;
};
/// The pair, or one leg of it, has failed or worked.
struct report {
  engine_pair pair;
  bool worked;
  /// Of a failure.
  leg failed = leg::decode;
  /// Nobody listens there.
  bool refused = false;
};
/// The client's whole answer.
struct answer {
  unsigned status;
  std::string body;
};
/// The client's stream goes on with this; `last`: and ends.
struct forward {
  std::string bytes;
  bool last = false;
};
/// A clear error: as an answer, or, where a stream has begun, as its last event.
struct fail {
  unsigned status;
  std::string code;
  std::string message;
};

}  // namespace action

using action_of_conversation = std::variant<action::choose_pair, action::query_bootstrap, action::forget_bootstrap,
                                            action::send, action::cancel, action::answer_metaserver, action::release,
                                            action::report, action::answer, action::forward, action::fail>;
using actions = std::vector<action_of_conversation>;

/// One client's request through its attempts at pairs, to a whole answer or a clear error. Every input belongs to an
/// attempt, numbered from 1; what comes from an earlier one is ignored. Knows no time: whoever runs it says when a
/// deadline has passed. After answer, fail, or a forward that is last, it is over and wants nothing but cancels.
class conversation {
 public:
  conversation(const conversation_settings& how, request_facts facts, std::string_view body);

  actions start();
  /// `id`, `random`, `metaserver`, `bootstrap`: see attempt. `protocol`: null if the pair has no prefill engine.
  actions on_pair(engine_pair pair, std::unique_ptr<protocol> by, std::string id, std::uint64_t random,
                  std::string metaserver, std::string bootstrap);
  /// `may_wait`: there is time to see whether an engine comes back.
  actions on_no_pair(std::string_view reason, bool may_wait = false);

  actions on_bootstrap(unsigned attempt, const std::variant<std::string, leg_failure>& outcome);
  actions on_prefill_answer(unsigned attempt, unsigned status, std::string_view body);
  actions on_metaserver(unsigned attempt, std::string_view request_id, std::string_view params);
  /// A whole answer (any status, not a stream).
  actions on_decode_answer(unsigned attempt, unsigned status, std::string_view body);
  /// A piece of a stream with status 200.
  actions on_decode_piece(unsigned attempt, std::string_view piece);
  /// The stream has ended in order.
  actions on_decode_end(unsigned attempt);
  actions on_leg_failed(unsigned attempt, leg which, const leg_failure& how);
  actions on_client_gone();
  /// `blame`: the present attempt has had most of the time, so that its engines are to blame.
  actions on_deadline(bool blame);

  /// The present attempt; 0 before the first.
  unsigned attempt_number() const { return number_; }
  const attempt& present() const { return at_; }
  bool over() const { return over_; }
  /// The client has had, or is about to get, a first token.
  bool first_token() const { return first_token_; }
  /// Of the present attempt: its decode engine has begun to answer.
  bool fetched() const { return fetched_; }
  bool asks_metaserver() const { return protocol_ && protocol_->asks_metaserver(); }

  // What has happened so far.
  std::uint32_t retries() const { return retries_; }
  std::uint32_t migrations() const { return migrations_; }
  std::uint32_t recomputes() const { return recomputes_; }
  bool prefilled_locally() const { return local_; }
  /// What failed, in order: `prefill 10.0.0.1:8000 answered 500; …`. Bounded.
  const std::string& story() const { return story_; }

 private:
  actions run(step next);
  void end_attempt(actions& out);
  void tell_worked(actions& out);
  void succeed(actions& out);
  void forgive(const std::string& decode);
  void let_go(actions& out);
  void let_down(leg which, const leg_failure& how, actions& out);
  actions another(leg failed, const leg_failure& how);
  actions give_back(actions out);
  actions go_on(actions out);
  actions fail(unsigned status, std::string code, std::string message, actions out = {});
  bool stale(unsigned attempt) const { return over_ || attempt != number_; }
  std::string failure_text() const;
  const engine_ref& engine(leg which) const;

  conversation_settings how_;
  request_facts facts_;
  std::string_view original_;
  continuation answer_;
  event_splitter events_;
  attempt at_;
  std::unique_ptr<protocol> protocol_;

  unsigned number_ = 0;
  bool over_ = false;
  bool first_token_ = false;
  bool local_ = false;
  bool last_timed_out_ = false;
  bool prefill_running_ = false;
  bool prefill_done_ = false;
  bool decode_running_ = false;
  /// The decode engine has begun to answer: it has fetched what prefill held.
  bool fetched_ = false;
  bool told_worked_ = false;
  /// The bootstrap answer was one kept from earlier, which may be of an engine that has gone.
  bool from_memory_ = false;

  action::choose_pair wish_;
  std::uint32_t attempts_ = 0;
  std::uint32_t prefill_failures_ = 0;
  /// Tokens of the answer before this attempt.
  std::uint64_t tokens_before_ = 0;
  /// Engines that nobody listened at, or that broke the connection.
  std::vector<std::string> gone_;
  std::uint32_t retries_ = 0;
  std::uint32_t migrations_ = 0;
  std::uint32_t recomputes_ = 0;
  std::string story_;
};

}  // namespace infernex::proxy
