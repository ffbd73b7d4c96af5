#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include <boost/json/value.hpp>

#include "actors/simulator/choice.hpp"
#include "actors/simulator/openai_request.hpp"
#include "actors/simulator/settings.hpp"

namespace infernex::simulator {

struct usage {
  std::uint32_t prompt_tokens = 0;
  std::uint32_t completion_tokens = 0;
  /// Prompt tokens served from the prefix cache.
  std::uint32_t cached_tokens = 0;
};

/// A whole answer.
struct answer {
  std::string text;
  finish_reason finish = finish_reason::stop;
  std::optional<std::string> stop_string;
};

/// The JSON of one request's answers with the fields vLLM has, as whole bodies or as server-sent events
/// (`data: {…}\n\n`).
class response_writer {
 public:
  /// `created`: seconds since 1970.
  response_writer(bool chat, std::string id, std::string model, std::int64_t created);

  std::string whole(std::span<const answer> answers, const usage& counts,
                    const boost::json::value& kv_transfer_params = nullptr) const;

  /// Chat only: the event that opens an answer.
  std::string role_event(std::uint32_t index) const;
  std::string event(std::uint32_t index, const choice::delta& delta) const;
  std::string usage_event(const usage& counts) const;
  /// An answer that has begun and cannot go on.
  static std::string error_event(const refusal& problem);
  static std::string_view end_event() { return "data: [DONE]\n\n"; }

  const std::string& id() const { return id_; }

 private:
  bool chat_;
  std::string id_;
  std::string model_;
  std::int64_t created_;
};

/// `{"object":"list","data":[…]}` of /v1/models.
std::string render_models(const settings& engine, std::int64_t created);
/// Answers of /tokenize, /detokenize and the two render endpoints.
std::string render_tokenized(std::span<const token_id> tokens, bool with_strings, const settings& engine);
std::string render_detokenized(std::string_view text);
std::string render_prompts(bool chat, std::string_view request_id, std::string_view model,
                           const std::vector<std::vector<token_id>>& prompts);
/// The vLLM release that speaks the chosen event dialect, as /version reports it.
std::string render_version(const settings& engine);

}  // namespace infernex::simulator
