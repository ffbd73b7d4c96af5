#pragma once

#include <string>

#include "messages/result.hpp"

namespace CLI {
class App;
}

namespace infernex::nodes {

/// A prompt that a command asks an indexer about: `POST /match_sort` with `explain`, which has an engine turn it into
/// tokens and names the keys of its blocks.
struct prompt_question {
  /// HTTP address of the indexer.
  std::string url = "http://127.0.0.1:8080";
  std::string model, tenant, adapter, salt;
  /// One of them: the prompt's text (or a JSON list of messages), or a JSON list of its token ids.
  std::string prompt_file, token_file;
  bool messages = false;
};

/// Adds the options, but for the indexer's address.
void add_prompt_options(CLI::App& command, prompt_question& into);

/// The indexer's answer. Errors: not_found (the file), malformed_input (no JSON, or the indexer refuses it), and those
/// of indexer::only_model and of the HTTP client.
result<std::string> ask_about(const prompt_question& prompt);

}  // namespace infernex::nodes
