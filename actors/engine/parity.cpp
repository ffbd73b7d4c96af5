#include "actors/engine/parity.hpp"

#include <algorithm>
#include <array>
#include <limits>

#include <boost/json.hpp>

#include "actors/engine/block_key.hpp"

namespace infernex::engine {

namespace {

namespace json = boost::json;

/// Blocks the prompt is to fill at least, and a block's size where nobody knows it.
constexpr std::uint32_t prompt_blocks = 3;
constexpr std::uint32_t assumed_block_size = 128;
/// And words it may have, however large the blocks: an engine has others to serve.
constexpr std::size_t max_prompt_words = 4'096;
constexpr std::size_t max_answer_bytes = 1 << 20;

/// Words that every tokenizer takes for one token or more, in an order that is nobody else's.
std::string unique_text(std::uint64_t nonce, std::size_t words) {
  constexpr std::array<std::string_view, 16> vocabulary{"river", "stone", "cloud", "green", "seven",  "table",
                                                        "music", "paper", "night", "bread", "silver", "winter",
                                                        "house", "light", "ocean", "garden"};
  std::string text = "Probe " + std::to_string(nonce) + ":";
  for (std::size_t i = 0; i < words; ++i) {
    nonce = nonce * 6364136223846793005ULL + 1442695040888963407ULL;  // Knuth's MMIX generator
    (text += ' ') += vocabulary[nonce >> 60];
  }
  return text;
}

std::size_t words_for(const parity_settings& settings) {
  const std::size_t block_size = settings.announced_block_size.value_or(assumed_block_size);
  const auto wanted = std::min(prompt_blocks * block_size, max_prompt_words);
  // A word may take several tokens.
  return std::min<std::size_t>(wanted, settings.max_model_len.value_or(std::numeric_limits<std::uint32_t>::max()) / 4);
}

struct usage_figures {
  std::optional<std::uint32_t> prompt_tokens;
  std::optional<std::uint32_t> cached_tokens;
};

std::optional<std::uint32_t> count_in(const json::object& holder, std::string_view key) {
  const auto* field = holder.if_contains({key.data(), key.size()});
  const auto* number = field == nullptr ? nullptr : field->if_int64();
  if (number == nullptr || *number < 0 || *number > std::numeric_limits<std::uint32_t>::max()) return std::nullopt;
  return static_cast<std::uint32_t>(*number);
}

usage_figures read_usage(std::string_view body) {
  usage_figures figures;
  boost::system::error_code problem;
  if (body.size() > max_answer_bytes) return figures;
  const auto answer = json::parse(json::string_view(body.data(), body.size()), problem);
  const auto* root = problem ? nullptr : answer.if_object();
  const auto* usage = root == nullptr ? nullptr : root->if_contains("usage");
  if (usage == nullptr || !usage->is_object()) return figures;
  figures.prompt_tokens = count_in(usage->get_object(), "prompt_tokens");
  const auto* details = usage->get_object().if_contains("prompt_tokens_details");
  if (details != nullptr && details->is_object())
    figures.cached_tokens = count_in(details->get_object(), "cached_tokens");
  return figures;
}

}  // namespace

std::string_view name(parity_fault fault) {
  switch (fault) {
    case parity_fault::none:
      return "none";
    case parity_fault::not_probed:
      return "not_probed";
    case parity_fault::wrong_block_size:
      return "wrong_block_size";
    case parity_fault::no_events:
      return "no_events";
    case parity_fault::tokenizer_differs:
      return "tokenizer_differs";
    case parity_fault::template_differs:
      return "template_differs";
    case parity_fault::cached_tokens_missing:
      return "cached_tokens_missing";
    case parity_fault::cached_tokens_fewer:
      return "cached_tokens_fewer";
    case parity_fault::count_:
      break;
  }
  return "unknown";
}

parity_probe::parity_probe(parity_settings settings, std::uint64_t nonce, time_point now)
    : settings_(std::move(settings)) {
  const auto words = words_for(settings_);
  text_.prompt = {prompt_kind::completion, settings_.model, unique_text(nonce, words)};
  // Another text, so that none of its blocks can be cached by the first.
  chat_.prompt = {prompt_kind::chat, settings_.model, unique_text(~nonce, words)};
  enter(step::text_tokens, now);
}

parity_probe::expectation& parity_probe::of_step() {
  const bool chat = step_ == step::chat_tokens || step_ == step::chat || step_ == step::chat_events;
  return chat ? chat_ : text_;
}
const parity_probe::expectation& parity_probe::of_step() const { return const_cast<parity_probe*>(this)->of_step(); }

void parity_probe::enter(step next, time_point now) {
  step_ = next;
  const bool waits = next == step::text_events || next == step::chat_events;
  deadline_ = now + (waits ? settings_.events_timeout : settings_.answer_timeout);
  if (next == step::text || next == step::chat) chains_.clear();
}

void parity_probe::end(parity_fault fault, std::string problem) {
  step_ = step::over;
  deadline_ = time_point::max();
  verdict_ = parity_verdict{fault, std::move(problem)};
}

std::optional<http_call> parity_probe::request() const {
  const auto& prompt = of_step().prompt;
  switch (step_) {
    case step::text_tokens:
    case step::chat_tokens:
      return token_call(of_step().endpoint, prompt);
    case step::text:
    case step::chat:
    case step::again:
      return generate_call(prompt, 1);
    case step::text_events:
    case step::chat_events:
    case step::over:
      break;
  }
  return std::nullopt;
}

void parity_probe::on_answer(unsigned status, std::string_view body, time_point now) {
  if (!request()) return;
  asks_tokens() ? on_tokens(status, body, now) : on_generated(status, body, now);
}

void parity_probe::on_failure(std::string_view why, time_point) {
  if (const auto asked = request())
    end(parity_fault::not_probed, "parity: no answer to POST " + asked->path + ": " + std::string(why));
}

void parity_probe::on_tokens(unsigned status, std::string_view body, time_point now) {
  auto answer = read_token_answer(status, body);
  if (answer.verdict == token_verdict::tokens) {
    of_step().told = std::move(answer.ids);
  } else if (of_step().endpoint == token_endpoint::render) {
    // Older engines have the other endpoint; some have render for one kind of prompt only.
    of_step().endpoint = token_endpoint::tokenize;
    deadline_ = now + settings_.answer_timeout;
    return;
  }
  enter(step_ == step::text_tokens ? step::chat_tokens : step::text, now);
}

void parity_probe::on_generated(unsigned status, std::string_view body, time_point now) {
  if (status != 200)
    return end(parity_fault::not_probed,
               "parity: POST " + request()->path + " was answered with status " + std::to_string(status));
  const auto figures = read_usage(body);
  if (step_ == step::again) return check_cached(figures.cached_tokens);
  of_step().counted = figures.prompt_tokens;
  enter(step_ == step::text ? step::text_events : step::chat_events, now);
  check_events(now);
}

void parity_probe::on_stored(const stored_blocks& blocks, time_point now) {
  if (step_ == step::over || asks_tokens()) return;
  chains_.add(blocks);
  if (check_block_size()) check_events(now);
}

bool parity_probe::check_block_size() {
  const auto seen = chains_.block_size();
  const auto& said = settings_.announced_block_size;
  if (!seen || !said || *said == *seen) return true;
  end(parity_fault::wrong_block_size, "parity: KV events have blocks of " + std::to_string(*seen) +
                                          " tokens, the engine's metrics say " + std::to_string(*said));
  return false;
}

/// Goes on once what is waited for has come.
void parity_probe::check_events(time_point now) {
  if (step_ != step::text_events && step_ != step::chat_events) return;
  const auto& expected = of_step();
  if (!settings_.expects_events) {
    if (expected.count_differs()) return end_differing(std::nullopt);
  } else {
    // Where nobody tells tokens, any block is as good as another.
    const bool seen = expected.told ? chains_.holds(*expected.told) : !chains_.empty();
    if (!seen || expected.count_differs()) return;
  }
  enter(step_ == step::text_events ? step::chat : step::again, now);
}

/// The time for events is over, and those of the prompt did not come.
void parity_probe::events_missing() {
  const auto& expected = of_step();
  const auto waited = std::to_string(settings_.events_timeout.count()) + " ms";
  if (chains_.empty() && expected.told && expected.told->size() < settings_.announced_block_size.value_or(0))
    return end(parity_fault::not_probed, "parity: the prompt is shorter than a block");
  if (chains_.empty() || !expected.told)
    return end(parity_fault::no_events, "parity: no KV events of a prompt within " + waited);
  const auto found = chains_.nearest(*expected.told, expected.counted.value_or(expected.told->size()));
  if (!found && !expected.count_differs())
    return end(parity_fault::no_events, "parity: KV events, but none of the probe's prompt within " + waited);
  end_differing(found);
}

void parity_probe::end_differing(const std::optional<parity_chains::difference>& first) {
  const bool chat = step_ == step::chat_events;
  const auto& expected = of_step();
  const auto& told = *expected.told;
  std::string problem =
      chat ? "parity: the chat template differs: the engine has " : "parity: the tokenizer differs: the engine has ";
  if (expected.count_differs()) {
    problem += std::to_string(*expected.counted) + " prompt tokens, not " + std::to_string(told.size());
  } else {
    problem += "other prompt tokens than its " + token_call(expected.endpoint, expected.prompt).path + " says";
  }
  if (first && first->position < told.size()) {
    problem += "; first at position " + std::to_string(first->position) + ": ";
    problem += (first->engine_token ? std::to_string(*first->engine_token) : std::string("none")) + ", not " +
               std::to_string(told[first->position]);
  }
  end(chat ? parity_fault::template_differs : parity_fault::tokenizer_differs, std::move(problem));
}

void parity_probe::check_cached(std::optional<std::uint32_t> cached) {
  if (!settings_.expects_cached_tokens) return end_sound();
  if (!cached)
    return end(parity_fault::cached_tokens_missing,
               "parity: answers do not say usage.prompt_tokens_details.cached_tokens");
  const auto seen = chains_.block_size();
  const auto block_size = (seen ? seen : settings_.announced_block_size).value_or(0);
  const std::size_t tokens = text_.told ? text_.told->size() : text_.counted.value_or(0);
  const auto predicted = cacheable_blocks(tokens, block_size) * block_size;
  if (*cached < predicted)
    return end(parity_fault::cached_tokens_fewer, "parity: a prompt sent again had " + std::to_string(*cached) +
                                                      " cached tokens, not " + std::to_string(predicted));
  end_sound();
}

void parity_probe::end_sound() {
  if (!text_.told && !chat_.told)
    return end(parity_fault::not_probed, "parity: neither render nor /tokenize tells a prompt's tokens");
  end(parity_fault::none);
}

void parity_probe::on_tick(time_point now) {
  if (now < deadline_) return;
  if (const auto asked = request())
    return end(parity_fault::not_probed, "parity: no answer to POST " + asked->path + " within " +
                                             std::to_string(settings_.answer_timeout.count()) + " ms");
  if (step_ != step::over) events_missing();
}

}  // namespace infernex::engine
