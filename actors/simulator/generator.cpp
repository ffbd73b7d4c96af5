#include "actors/simulator/generator.hpp"

#include <utility>

#include <xxhash.h>

namespace infernex::simulator {

namespace {

std::uint64_t absorb(std::uint64_t state, token_id token) {
  const unsigned char bytes[] = {static_cast<unsigned char>(token), static_cast<unsigned char>(token >> 8),
                                 static_cast<unsigned char>(token >> 16), static_cast<unsigned char>(token >> 24)};
  return XXH3_64bits_withSeed(bytes, sizeof bytes, state);
}

/// Independent numbers from one state: `purpose` is hashed with it.
std::uint64_t draw(std::uint64_t state, char purpose) { return XXH3_64bits_withSeed(&purpose, 1, state); }

}  // namespace

generator generator::random(std::uint64_t seed, std::string_view model, std::span<const token_id> preceding,
                            double eos_probability) {
  generator made;
  made.eos_probability_ = eos_probability;
  made.state_ = XXH3_64bits_withSeed(model.data(), model.size(), seed);
  for (token_id token : preceding) made.state_ = absorb(made.state_, token);
  return made;
}

generator generator::echo(std::vector<token_id> answer) {
  generator made;
  made.echo_ = true;
  made.answer_ = std::move(answer);
  return made;
}

token_id generator::next(bool may_end) {
  if (echo_) {
    if (position_ >= answer_.size()) {
      if (may_end) return eos_token;
      if (answer_.empty()) return ' ';
      position_ = 0;
    }
    return answer_[position_++];
  }
  constexpr double unit = 1.0 / 9007199254740992.0;  // 2^-53
  if (may_end && static_cast<double>(draw(state_, 'e') >> 11) * unit < eos_probability_) return eos_token;
  const auto letters = draw(state_, 't') % (26 * 26);
  const char text[] = {' ', static_cast<char>('a' + letters / 26), static_cast<char>('a' + letters % 26)};
  const token_id token = (*encode({text, sizeof text})).front();
  state_ = absorb(state_, token);
  return token;
}

}  // namespace infernex::simulator
