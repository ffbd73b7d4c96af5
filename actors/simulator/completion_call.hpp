#pragma once

#include <string>
#include <vector>

#include "actors/runtime/http/server.hpp"
#include "actors/simulator/engine_loop.hpp"
#include "actors/simulator/openai_request.hpp"
#include "actors/simulator/openai_response.hpp"

namespace infernex::simulator {

/// One chat or completion request being answered: its sequences in the engine, and what they have produced
/// that has not been written yet. That is one piece of text an answer, merged while the client is slow, so
/// the engine never waits and memory is bounded by max_tokens. Destroying it aborts what still runs.
class completion_call final : public token_sink {
 public:
  completion_call(http::asio::io_context& context, engine_loop& engine, const settings& values,
                  completion_request request);
  ~completion_call() override;
  completion_call(const completion_call&) = delete;
  completion_call& operator=(const completion_call&) = delete;

  /// Errors: invalid_request, overloaded.
  std::optional<error> start();
  /// The client is gone: frees the engine's blocks, ends every wait.
  void cancel();
  bool cancelled() const { return cancelled_; }

  /// Resumes when there is something new, or the call was cancelled.
  http::task<void> wait();
  /// All answers have ended.
  bool finished() const { return running_ == 0; }
  /// What is new, as server-sent events.
  std::string take_events(const response_writer& writer);
  /// Whole answers. Precondition: finished().
  std::vector<answer> take_answers();
  usage counts() const;
  const completion_request& request() const { return request_; }

  std::optional<finish_reason> on_token(const token_output& output) override;

 private:
  struct answer_state {
    choice text;
    choice::delta unwritten;
    std::uint32_t cached_tokens = 0;
    bool opened = false;
    bool ended = false;
  };

  engine_loop& engine_;
  const settings& values_;
  completion_request request_;
  steady_timer news_;
  std::vector<answer_state> answers_;
  sequence_id first_id_ = 0;
  std::size_t running_ = 0;
  bool changed_ = false;
  bool cancelled_ = false;
};

/// Answers `call` to its client, streaming or not.
http::task<void> answer_completion(completion_call& call, const response_writer& writer, http::responder& out);

}  // namespace infernex::simulator
