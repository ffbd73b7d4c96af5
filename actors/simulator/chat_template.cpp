#include "actors/simulator/chat_template.hpp"

#include <string_view>

namespace infernex::simulator {

std::string render_prompt(const std::vector<chat_message>& messages, const template_options& options) {
  std::string prompt;
  for (std::size_t i = 0; i < messages.size(); ++i) {
    const auto& message = messages[i];
    prompt.append("<|").append(message.role).append("|>\n").append(message.content);
    if (!options.continue_final_message || i + 1 < messages.size()) prompt += "<|end|>\n";
  }
  if (options.add_generation_prompt && !options.continue_final_message) prompt += "<|assistant|>\n";
  return prompt;
}

std::string text_to_echo(const std::vector<chat_message>& messages, const template_options& options) {
  std::string_view text;
  for (const auto& message : messages) {
    if (message.role == "user") text = message.content;
  }
  if (options.continue_final_message && !messages.empty() && messages.back().role == "assistant") {
    const auto& said = messages.back().content;
    if (text.starts_with(said)) text.remove_prefix(said.size());
  }
  return std::string(text);
}

}  // namespace infernex::simulator
