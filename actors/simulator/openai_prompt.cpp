#include "actors/simulator/openai_prompt.hpp"

#include <utility>

#include <boost/json/serialize.hpp>

namespace infernex::simulator {

namespace json = boost::json;

namespace {

std::string joined_parts(json_fields& fields, const json::array& parts, const std::string& where) {
  std::string text;
  bool first = true;
  for (const auto& entry : parts) {
    const auto* part = entry.if_object();
    if (!part) {
      fields.refuse_type(where, "a list of content parts", entry);
      return {};
    }
    json_fields inner(*part);
    const auto type = inner.text("type").value_or("");
    const auto content = inner.text("text");
    if (type != "text" || !content) {
      fields.refuse(where, where + ": the model takes parts of type \"text\" only, got \"" + type + "\".");
      return {};
    }
    if (!std::exchange(first, false)) text += '\n';
    text += *content;
  }
  return text;
}

}  // namespace

std::vector<chat_message> read_messages(json_fields& fields) {
  std::vector<chat_message> messages;
  const auto* value = fields.find("messages");
  const auto* list = value ? value->if_array() : nullptr;
  if (!list) {
    if (value) fields.refuse_type("messages", "an array", *value);
    fields.refuse("messages", "messages is required.");
    return {};
  }
  if (list->empty()) fields.refuse("messages", "messages must hold at least one message.");
  for (std::size_t i = 0; i < list->size(); ++i) {
    const auto where = "messages[" + std::to_string(i) + "]";
    const auto* object = (*list)[i].if_object();
    if (!object) {
      fields.refuse_type(where, "an object", (*list)[i]);
      return {};
    }
    json_fields inner(*object);
    chat_message message;
    message.role = inner.text("role").value_or("");
    if (message.role.empty()) fields.refuse(where + ".role", where + ".role: expected a string.");
    if (const auto* content = inner.find("content")) {
      if (const auto* text = content->if_string()) {
        message.content.assign(text->data(), text->size());
      } else if (const auto* parts = content->if_array()) {
        message.content = joined_parts(fields, *parts, where + ".content");
      } else {
        fields.refuse_type(where + ".content", "a string or an array", *content);
      }
    }
    messages.push_back(std::move(message));
  }
  return messages;
}

template_options read_template_options(json_fields& fields) {
  template_options options;
  options.add_generation_prompt = fields.boolean("add_generation_prompt").value_or(true);
  options.continue_final_message = fields.boolean("continue_final_message").value_or(false);
  if (options.add_generation_prompt && options.continue_final_message) {
    fields.refuse("continue_final_message",
                  "continue_final_message and add_generation_prompt cannot both be true: set add_generation_prompt to "
                  "false.");
  }
  return options;
}

std::vector<token_id> tokens_of(json_fields& fields, std::string_view name, std::string_view text) {
  auto tokens = encode(text);
  if (tokens) return std::move(*tokens);
  fields.refuse(name, std::string(name) + ": " + tokens.failure().detail + ".");
  return {};
}

std::vector<token_id> tokens_of(json_fields& fields, std::string_view name, const json::array& ids) {
  std::vector<token_id> tokens;
  std::string scratch;
  tokens.reserve(ids.size());
  for (const auto& entry : ids) {
    const auto* id = entry.if_int64();
    scratch.clear();
    if (!id || *id < 0 || *id >= eos_token || !append_text(static_cast<token_id>(*id), scratch)) {
      fields.refuse(name, std::string(name) + ": not a token id of this model: " + json::serialize(entry) + ".");
      return {};
    }
    tokens.push_back(static_cast<token_id>(*id));
  }
  return tokens;
}

std::vector<std::vector<token_id>> read_prompts(json_fields& fields) {
  const auto* value = fields.find("prompt");
  if (!value) {
    fields.refuse("prompt", "prompt is required.");
    return {};
  }
  if (const auto* text = value->if_string())
    return {tokens_of(fields, "prompt", std::string_view(text->data(), text->size()))};
  const auto* list = value->if_array();
  if (!list) {
    fields.refuse_type("prompt", "a string, a list of strings or token ids", *value);
    return {};
  }
  if (!list->empty() && list->front().is_int64()) return {tokens_of(fields, "prompt", *list)};
  if (list->size() > max_choices) {
    fields.refuse("prompt", "prompt holds more than " + std::to_string(max_choices) + " prompts.");
    return {};
  }
  std::vector<std::vector<token_id>> prompts;
  for (const auto& entry : *list) {
    if (const auto* one = entry.if_string()) {
      prompts.push_back(tokens_of(fields, "prompt", std::string_view(one->data(), one->size())));
    } else if (const auto* ids = entry.if_array()) {
      prompts.push_back(tokens_of(fields, "prompt", *ids));
    } else {
      fields.refuse_type("prompt", "a list of strings or of lists of token ids", entry);
      return {};
    }
  }
  if (prompts.empty()) fields.refuse("prompt", "prompt is empty.");
  return prompts;
}

}  // namespace infernex::simulator
