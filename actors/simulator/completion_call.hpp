#pragma once

#include <memory>
#include <string>
#include <vector>

#include "actors/runtime/http/server.hpp"
#include "actors/simulator/engine_loop.hpp"
#include "actors/simulator/kv_take.hpp"
#include "actors/simulator/kv_transfer.hpp"
#include "actors/simulator/openai_request.hpp"
#include "actors/simulator/openai_response.hpp"

namespace infernex::simulator {

/// One chat or completion request being answered: its sequences in the engine, and what they have produced
/// that has not been written yet. That is one piece of text an answer, merged while the client is slow, so
/// the engine never waits and memory is bounded by max_tokens. Destroying it aborts what still runs.
class completion_call final : public token_sink {
 public:
  /// `id`: of the answer; what the engine knows the request by follows from it. `fault`: what is to go wrong with it.
  completion_call(kv_transfer& transfer, const settings& values, completion_request request, std::string id,
                  std::optional<fault_rule> fault);
  ~completion_call() override;
  completion_call(const completion_call&) = delete;
  completion_call& operator=(const completion_call&) = delete;

  /// Starts its sequences, unless it waits for KV from elsewhere. Errors: invalid_request, overloaded.
  std::optional<error> start();
  /// What has to come before the first token: the KV, if it is to come; or the fault that strikes so early.
  http::task<void> arrive();
  /// A prefill that is answered only when another engine has its KV. Once finished(), or cancelled: nobody waits then.
  http::task<void> hand_over();
  /// Why it cannot be answered.
  const std::optional<refusal>& failure() const { return failure_; }
  /// The fault that has struck: the connection, or the engine, is to end now.
  const fault_rule* doom() const { return doomed_ ? &*fault_ : nullptr; }
  /// The client is gone: frees the engine's blocks, ends every wait.
  void cancel();
  bool cancelled() const { return cancelled_; }

  /// Resumes when there is something new, or the call was cancelled.
  http::task<void> wait();
  /// All answers have ended.
  bool finished() const { return running_ == 0 && !doomed_; }
  /// What is new, as server-sent events.
  std::string take_events(const response_writer& writer);
  /// Whole answers. Precondition: finished().
  std::vector<answer> take_answers();
  usage counts() const;
  /// Of a prefill's answer.
  const boost::json::value& kv_transfer_params() const { return kv_transfer_params_; }
  const completion_request& request() const { return request_; }

  std::optional<finish_reason> on_token(const token_output& output) override;
  void on_recomputed(sequence_id id) override;
  void on_memory_short() override { release_kv(); }

 private:
  struct answer_state {
    choice text;
    choice::delta unwritten;
    std::uint32_t cached_tokens = 0;
    bool opened = false;
    bool ended = false;
  };

  bool takes() const { return request_.transfer.what == kv_transfer_request::part::take; }
  bool gives() const { return request_.transfer.what == kv_transfer_request::part::give; }
  /// `taken`: one a prompt.
  std::optional<error> begin(const std::vector<kv_taken>& taken);
  /// vLLM's name of a prompt inside the engine: a completion's prompts are numbered.
  std::string name_of(std::size_t prompt) const;
  const kv_transfer_request& transfer_of(std::size_t prompt) const {
    return prompt == 0 || request_.more_transfers.empty() ? request_.transfer : request_.more_transfers[prompt - 1];
  }
  bool transfers(std::size_t prompt) const { return prompt == 0 || !request_.more_transfers.empty(); }
  void give_back(answer_state& one);
  void release_kv(std::size_t prompt);
  void release_kv();
  void tell();

  kv_transfer& transfer_;
  engine_loop& engine_;
  const settings& values_;
  const std::string id_;
  transfer_call kv_;
  std::optional<fault_rule> fault_;
  const kv_transfer::clock::time_point arrived_ = kv_transfer::clock::now();
  /// Blocks that came from elsewhere, one a prompt, until its first token.
  std::vector<sequence_id> kv_held_;
  /// Of the prompts that are offered, one each, since then.
  std::vector<std::unique_ptr<awaited_entry>> readers_;
  boost::json::value kv_transfer_params_;
  std::optional<refusal> failure_;
  bool doomed_ = false;
  completion_request request_;
  steady_timer news_;
  std::vector<answer_state> answers_;
  sequence_id first_id_ = 0;
  std::size_t running_ = 0;
  bool changed_ = false;
  bool cancelled_ = false;
};

/// What a client is told when start() has failed.
refusal refusal_of(const error& failed);

/// Answers `call` to its client, streaming or not.
http::task<void> answer_completion(completion_call& call, const response_writer& writer, http::responder& out);

}  // namespace infernex::simulator
