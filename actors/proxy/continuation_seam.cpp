// Where one engine's text ends and the next one's begins: stop strings over the seam, and ends of our own making.

#include <algorithm>

#include "actors/proxy/continuation.hpp"

namespace infernex::proxy {

void continuation::start_seam() {
  std::size_t longest = 0;
  for (const auto& s : facts_.stops) longest = std::max(longest, s.size());
  const auto reach = std::min(generated_.size(), longest == 0 ? 0 : longest - 1);
  tail_ = generated_.substr(generated_.size() - reach);
  behind_.clear();
}

const std::string* continuation::stop_over_seam(std::string_view text, std::size_t& length) const {
  const std::string all = tail_ + std::string(text);
  const std::string* found = nullptr;
  std::size_t found_end = std::string::npos;
  for (const auto& stop : facts_.stops) {
    for (auto at = all.find(stop); at != std::string::npos && at < tail_.size(); at = all.find(stop, at + 1)) {
      const auto end = at + stop.size();
      if (end <= tail_.size() || end >= found_end) continue;
      found = &stop;
      found_end = end;
    }
  }
  if (found) length = found_end - tail_.size();
  return found;
}

bool continuation::seam_open(std::string_view text) const {
  const std::string all = tail_ + std::string(text);
  for (const auto& stop : facts_.stops) {
    for (std::size_t at = 0; at < tail_.size(); ++at) {
      const auto rest = std::string_view(all).substr(at);
      if (rest.size() < stop.size() && std::string_view(stop).starts_with(rest)) return true;
    }
  }
  return false;
}

std::string continuation::choice_event(std::string_view text, std::string_view finish, std::string_view stop) const {
  const bool chat = facts_.kind == api::chat;
  std::string out =
      "data: {\"id\":" + id_ + ",\"object\":\"" + (chat ? "chat.completion.chunk" : "text_completion") + "\"";
  if (!created_.empty()) out += ",\"created\":" + created_;
  if (!model_.empty()) out += ",\"model\":" + model_;
  out += ",\"choices\":[{\"index\":0,";
  if (chat) {
    out += "\"delta\":{" + (text.empty() ? std::string() : "\"content\":" + quoted(text)) + "}";
  } else {
    out += "\"text\":" + quoted(text);
  }
  out += ",\"logprobs\":null,\"finish_reason\":";
  out += finish.empty() ? std::string("null") : quoted(finish);
  out += ",\"stop_reason\":";
  out += stop.empty() ? std::string("null") : quoted(stop);
  return out += "}]}\n\n";
}

std::string continuation::ending(std::string_view text, std::string_view finish, std::string_view stop) const {
  auto out = choice_event(text, finish, stop);
  if (facts_.include_usage && prompt_tokens_) {
    const auto completion = tokens();
    out += "data: {\"id\":" + id_ + ",\"object\":\"" +
           (facts_.kind == api::chat ? "chat.completion.chunk" : "text_completion") + "\"";
    if (!created_.empty()) out += ",\"created\":" + created_;
    if (!model_.empty()) out += ",\"model\":" + model_;
    out += ",\"choices\":[],\"usage\":{\"prompt_tokens\":" + std::to_string(*prompt_tokens_) +
           ",\"total_tokens\":" + std::to_string(*prompt_tokens_ + completion) +
           ",\"completion_tokens\":" + std::to_string(completion);
    if (!cached_details_.empty()) out += ",\"prompt_tokens_details\":" + cached_details_;
    out += "}}\n\n";
  }
  return out += "data: [DONE]\n\n";
}

std::string continuation::closing() {
  auto out = std::exchange(waiting_, {});
  finished_ = true;
  if (facts_.stream) return out += ending({}, "length", {});
  const bool chat = facts_.kind == api::chat;
  out = "{\"id\":" + (id_.empty() ? std::string("null") : id_) + ",\"object\":\"" +
        (chat ? "chat.completion" : "text_completion") + "\"";
  if (!created_.empty()) out += ",\"created\":" + created_;
  if (!model_.empty()) out += ",\"model\":" + model_;
  const auto text = quoted(generated_);
  out += ",\"choices\":[{\"index\":0," +
         (chat ? "\"message\":{\"role\":\"assistant\",\"content\":" + text + "}" : "\"text\":" + text) +
         ",\"logprobs\":null,\"finish_reason\":\"length\",\"stop_reason\":null}]";
  if (prompt_tokens_) {
    out += ",\"usage\":{\"prompt_tokens\":" + std::to_string(*prompt_tokens_) +
           ",\"total_tokens\":" + std::to_string(*prompt_tokens_ + tokens()) +
           ",\"completion_tokens\":" + std::to_string(tokens());
    if (!cached_details_.empty()) out += ",\"prompt_tokens_details\":" + cached_details_;
    out += '}';
  }
  return out += '}';
}

}  // namespace infernex::proxy
