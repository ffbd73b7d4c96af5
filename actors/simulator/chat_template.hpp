#pragma once

#include <string>
#include <vector>

namespace infernex::simulator {

struct chat_message {
  std::string role;
  /// Parts of a list are joined by line feeds, as vLLM does for text-only models.
  std::string content;
};

struct template_options {
  /// Ends with the head of the assistant's answer.
  bool add_generation_prompt = true;
  /// Leaves the last message open, so that the answer goes on where it stops. Not together with the above.
  bool continue_final_message = false;
};

/// The prompt a conversation becomes: `<|role|>\ncontent<|end|>\n` a message. A conversation that grows keeps
/// its prompt as a prefix, which is what the prefix cache lives on.
std::string render_prompt(const std::vector<chat_message>& messages, const template_options& options);

/// What echo mode answers: the last user message, less what an assistant message that is to be continued
/// has already said of it.
std::string text_to_echo(const std::vector<chat_message>& messages, const template_options& options);

}  // namespace infernex::simulator
