#include "actors/simulator/generator.hpp"

#include <algorithm>

#include <doctest/doctest.h>

#include "actors/simulator/chat_template.hpp"

using namespace infernex::simulator;

namespace {

std::vector<token_id> generate(generator source, std::size_t count) {
  std::vector<token_id> tokens;
  while (tokens.size() < count) tokens.push_back(source.next(false));
  return tokens;
}

}  // namespace

TEST_CASE("a prompt continued by a part of its answer gets the rest of the same answer") {
  const std::string prompt = render_prompt({{"system", "Be brief."}, {"user", "Tell me a story"}}, {});
  const auto undisturbed = generate(generator::random(1, "m", *encode(prompt), 0), 50);
  for (std::size_t cut : {0, 1, 7, 49}) {
    const std::vector<token_id> before(undisturbed.begin(), undisturbed.begin() + static_cast<std::ptrdiff_t>(cut));
    // Through text, as a gateway continues it.
    const auto continued = *encode(prompt + *decode(before));
    const auto rest = generate(generator::random(1, "m", continued, 0), 50 - cut);
    CHECK(std::equal(rest.begin(), rest.end(), undisturbed.begin() + static_cast<std::ptrdiff_t>(cut)));
  }
}

TEST_CASE("the answer depends on seed, model and every token before") {
  const auto prompt = *encode("one two three");
  const auto base = generate(generator::random(1, "m", prompt, 0), 20);
  CHECK(generate(generator::random(1, "m", prompt, 0), 20) == base);
  CHECK(generate(generator::random(2, "m", prompt, 0), 20) != base);
  CHECK(generate(generator::random(1, "n", prompt, 0), 20) != base);
  CHECK(generate(generator::random(1, "m", *encode("One two three"), 0), 20) != base);
}

TEST_CASE("the answer ends with the given probability and never when it may not") {
  auto source = generator::random(3, "m", {}, 0.25);
  int ends = 0;
  for (int i = 0; i < 4'000; ++i) {
    ends += source.next(true) == eos_token;
    CHECK(source.next(false) != eos_token);
  }
  CHECK(ends > 850);
  CHECK(ends < 1150);
  CHECK(generator::random(3, "m", {}, 1.0).next(true) == eos_token);
}

TEST_CASE("an echo says its text and ends, or starts over when it may not end") {
  const auto text = *encode("say this");
  auto source = generator::echo(text);
  for (token_id token : text) CHECK(source.next(true) == token);
  CHECK(source.next(true) == eos_token);
  CHECK(source.next(false) == text.front());
  CHECK(generator::echo({}).next(true) == eos_token);
  CHECK(generator::echo({}).next(false) != eos_token);
}

TEST_CASE("a conversation that grows keeps its prompt as a prefix") {
  std::vector<chat_message> messages = {{"system", "Be brief."}, {"user", "Hi"}};
  const auto first = render_prompt(messages, {});
  CHECK(first == "<|system|>\nBe brief.<|end|>\n<|user|>\nHi<|end|>\n<|assistant|>\n");
  messages.push_back({"assistant", " ab cd"});
  messages.push_back({"user", "And?"});
  CHECK(render_prompt(messages, {}).starts_with(first + " ab cd"));
}

TEST_CASE("a final message can be left open to be continued") {
  const std::vector<chat_message> messages = {{"user", "Hi there"}, {"assistant", "Hi"}};
  const template_options options{.add_generation_prompt = false, .continue_final_message = true};
  CHECK(render_prompt(messages, options) == "<|user|>\nHi there<|end|>\n<|assistant|>\nHi");
  CHECK(text_to_echo(messages, options) == " there");
  CHECK(text_to_echo(messages, {}) == "Hi there");
}
