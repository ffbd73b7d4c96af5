#include "actors/proxy/continuation.hpp"

#include <algorithm>
#include <vector>

namespace infernex::proxy {
namespace {

std::string_view trimmed(std::string_view text) {
  while (!text.empty() && (text.back() == '\n' || text.back() == '\r' || text.back() == ' ')) text.remove_suffix(1);
  while (!text.empty() && text.front() == ' ') text.remove_prefix(1);
  return text;
}

/// Behind `data:` of the event's first data line; empty: a comment, or nothing.
std::string_view data_of(std::string_view event) {
  constexpr std::string_view mark = "data:";
  while (!event.empty()) {
    const auto line = event.substr(0, event.find('\n'));
    if (line.starts_with(mark)) return trimmed(line.substr(mark.size()));
    event.remove_prefix(std::min(event.size(), line.size() + 1));
  }
  return {};
}

bool is_null(std::string_view json) { return json.empty() || json == "null"; }

bool says_something(std::string_view json) { return !is_null(json) && json != "\"\"" && json != "[]" && json != "{}"; }

constexpr std::string_view recomputed_mark = "\"recomputed\"";

}  // namespace

struct continuation::event_parts {
  event_parts(api kind, std::string_view json, std::string_view text_holder) : data(json) {
    member_cursor walk(json);
    for (json_member m; walk.next(m);) {
      if (m.is("id")) id = m.value;
      if (m.is("created")) created = m.value;
      if (m.is("model")) model = m.value;
      if (m.is("choices")) choices = m.value;
      if (m.is("usage")) usage = m.value;
      if (m.is("error")) error = m.value;
    }
    choice = first_element(choices);
    std::string_view content;
    member_cursor of_choice(choice);
    for (json_member m; of_choice.next(m);) {
      if (m.is("finish_reason")) finish = m.value;
      if (m.is("stop_reason")) stop = m.value;
      // A completions choice has its text in itself.
      if (kind == api::completions && m.is("text")) content = m.value;
      if (kind == api::chat && m.is(text_holder)) holder = m.value;
    }
    if (kind == api::completions) {
      holder = choice;
    } else {
      content = read_holder();
    }
    text = text_of(content).value_or("");
  }

  /// What a chat message, or a piece of one, has besides its text, which is returned.
  std::string_view read_holder() {
    std::string_view content;
    member_cursor walk(holder);
    for (json_member m; walk.next(m);) {
      if (m.is("content")) content = m.value;
      if (m.is("role")) has_role = true;
      for (const auto name : {"tool_calls", "function_call", "reasoning_content", "reasoning", "refusal", "audio"})
        if (m.is(name)) other = other || says_something(m.value);
    }
    return content;
  }

  std::string_view data, id, created, model, choices, choice, holder, finish, stop, usage, error;
  std::string text;
  bool has_role = false;
  /// Output that is no plain text.
  bool other = false;
};

void continuation::note_prefill(std::string_view answer) {
  if (prefill_known_) return;
  const auto usage = find_value(answer, "usage");
  if (!is_object(usage)) return;
  prefill_known_ = true;
  prompt_tokens_ = count_of(find_value(usage, "prompt_tokens"));
  cached_details_ = find_value(usage, "prompt_tokens_details");
}

void continuation::next_engine(std::string& out) {
  out += std::exchange(waiting_, {});
  ++engine_;
  finished_ = false;
  tokens_before_ += tokens_now_;
  tokens_now_ = 0;
  start_seam();
}

std::string continuation::fixed_usage(std::string_view usage) const {
  std::vector<json_edit> edits;
  if (tokens_before_ > 0) {
    const auto prompt = count_of(find_value(usage, "prompt_tokens")).value_or(0);
    const auto completion = count_of(find_value(usage, "completion_tokens")).value_or(0) + tokens_before_;
    const auto real = prompt_tokens_.value_or(prompt - std::min(prompt, tokens_before_));
    edits.push_back({"prompt_tokens", std::to_string(real)});
    edits.push_back({"completion_tokens", std::to_string(completion)});
    edits.push_back({"total_tokens", std::to_string(real + completion)});
  }
  if (!cached_details_.empty()) edits.push_back({"prompt_tokens_details", cached_details_});
  return edited(usage, edits).value_or(std::string(usage));
}

std::optional<std::string> continuation::as_continued(const event_parts& p) const {
  const bool says = !p.text.empty() || !is_null(p.finish) || p.other || is_object(p.usage);
  if (!says && role_sent_) return std::nullopt;
  std::vector<json_edit> edits{{"id", id_}};
  if (!created_.empty() && !p.created.empty()) edits.push_back({"created", created_});
  if (p.has_role && role_sent_) {
    const json_edit no_role{"role", {}};
    const auto delta = edited(p.holder, {&no_role, 1});
    const json_edit in_choice{"delta", delta};
    const auto choice = edited(p.choice, {&in_choice, 1});
    if (choice) edits.push_back({"choices", with_first(p.choices, *choice)});
  }
  if (is_object(p.usage)) edits.push_back({"usage", fixed_usage(p.usage)});
  const auto data = edited(p.data, edits);
  if (!data) return std::nullopt;
  return "data: " + *data + "\n\n";
}

void continuation::note_text(std::string_view text) { generated_ += text; }

seen continuation::take_event(std::string_view event, std::string& out) {
  seen s;
  const auto data = data_of(event);
  if (data == "[DONE]") {
    finished_ = s.complete = true;
    out.append(waiting_).append(event);
    waiting_.clear();
    return s;
  }
  if (!is_object(data)) {
    out += event;
    return s;
  }
  const event_parts p(facts_.kind, data, "delta");
  if (is_object(p.error)) {
    // A mistake of the client's is the answer; anything else is the engine's.
    const auto code = count_of(find_value(p.error, "code"));
    if (code && *code >= 400 && *code < 500) {
      out.append(waiting_).append(event);
      s.output = output_ = finished_ = true;
      return s;
    }
    s.failure = text_of(find_value(p.error, "message")).value_or("sent an error");
    return s;
  }
  if (const auto counted = count_of(find_value(p.usage, "completion_tokens"))) {
    tokens_now_ = *counted;
  } else if (!p.text.empty()) {
    ++tokens_now_;
  }
  const bool again = engine_ > 1 && !id_.empty();
  if (id_.empty() && !p.id.empty()) {
    id_ = p.id;
    created_ = p.created;
    model_ = p.model;
  }
  note_text(p.text);
  other_output_ = other_output_ || p.other;
  const bool given_back = p.stop == recomputed_mark;
  s.output = !p.text.empty() || p.other || (!is_null(p.finish) && !given_back);
  output_ = output_ || s.output;

  std::size_t of_stop = 0;
  if (!tail_.empty() && !p.text.empty()) {
    behind_ += p.text;
    if (const auto* stop = stop_over_seam(behind_, of_stop)) {
      const auto shown = facts_.include_stop ? behind_.substr(0, of_stop) : std::string();
      waiting_.clear();
      out += ending(shown, "stop", *stop);
      finished_ = s.complete = true;
      return s;
    }
  }
  const bool hold = !tail_.empty() && !given_back && is_null(p.finish) && (behind_.empty() || seam_open(behind_));
  if (!hold && (given_back || !behind_.empty() || !is_null(p.finish))) tail_.clear();
  auto& to = hold ? waiting_ : out;
  if (!hold) {
    out += waiting_;
    waiting_.clear();
  }
  if (given_back) {
    s.recomputed = true;
    if (!p.text.empty()) to += choice_event(p.text, {}, {});
    return s;
  }
  if (!is_null(p.finish)) finished_ = true;
  if (again) {
    if (const auto retold = as_continued(p)) to += *retold;
  } else if (is_object(p.usage) && knows_better_usage()) {
    const json_edit edit{"usage", fixed_usage(p.usage)};
    to += "data: " + edited(p.data, {&edit, 1}).value_or(std::string(p.data)) + "\n\n";
  } else {
    to += event;
  }
  role_sent_ = role_sent_ || p.has_role;
  return s;
}

seen continuation::take_whole(std::string_view answer, std::string& out) {
  seen s;
  const event_parts p(facts_.kind, answer, "message");
  const auto counted = count_of(find_value(p.usage, "completion_tokens"));
  if (p.stop == recomputed_mark) {
    s.recomputed = true;
    // Nothing has reached the client: what cannot be gone on with is started anew.
    if (!counted || p.other || !facts_.not_continuable.empty()) return s;
    tokens_now_ = *counted;
    id_ = id_.empty() ? std::string(p.id) : id_;
    created_ = created_.empty() ? std::string(p.created) : created_;
    model_ = model_.empty() ? std::string(p.model) : model_;
    note_text(p.text);
    return s;
  }
  s.output = s.complete = finished_ = true;
  if (generated_.empty() && !(knows_better_usage() && is_object(p.usage))) {
    out += answer;
    return s;
  }
  tokens_now_ = counted.value_or(0);
  std::vector<json_edit> edits;
  if (!generated_.empty()) {
    std::size_t of_stop = 0;
    const auto* stop = stop_over_seam(p.text, of_stop);
    const auto text = generated_ + (stop ? (facts_.include_stop ? p.text.substr(0, of_stop) : std::string()) : p.text);
    const json_edit content{facts_.kind == api::chat ? "content" : "text", quoted(text)};
    std::vector<json_edit> in_choice;
    if (stop) in_choice = {{"finish_reason", "\"stop\""}, {"stop_reason", quoted(*stop)}};
    if (facts_.kind == api::chat) {
      in_choice.push_back({"message", edited(p.holder, {&content, 1})});
    } else {
      in_choice.push_back(content);
    }
    const auto choice = edited(p.choice, in_choice);
    if (choice) edits.push_back({"choices", with_first(p.choices, *choice)});
  }
  if (is_object(p.usage)) edits.push_back({"usage", fixed_usage(p.usage)});
  out += edited(answer, edits).value_or(std::string(answer));
  return s;
}

}  // namespace infernex::proxy
