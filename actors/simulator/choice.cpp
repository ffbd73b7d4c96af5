#include "actors/simulator/choice.hpp"

#include <algorithm>
#include <utility>

namespace infernex::simulator {

stop_matcher::stop_matcher(std::vector<std::string> stops, bool keep) : stops_(std::move(stops)), keep_(keep) {
  std::erase(stops_, std::string());
}

std::string stop_matcher::push(std::string_view piece, bool may_stop) {
  std::string text = std::exchange(held_, {});
  text += piece;
  if (!may_stop) return text;
  std::size_t first = std::string::npos;
  const std::string* found = nullptr;
  for (const auto& stop : stops_) {
    if (const auto at = text.find(stop); at < first) {
      first = at;
      found = &stop;
    }
  }
  if (found) {
    matched_ = *found;
    text.resize(first + (keep_ ? found->size() : 0));
    return text;
  }
  // The longest end of the text that a stop string starts with.
  std::size_t keep = 0;
  for (const auto& stop : stops_) {
    for (auto length = std::min(text.size(), stop.size() - 1); length > keep; --length) {
      if (text.ends_with(std::string_view(stop).substr(0, length))) keep = length;
    }
  }
  held_ = text.substr(text.size() - keep);
  text.resize(text.size() - keep);
  return text;
}

std::string stop_matcher::flush() { return std::exchange(held_, {}); }

choice::delta choice::end(std::string reason) { return {stops_.flush(), finish_reason::stop, std::move(reason)}; }

choice::delta choice::push(const token_output& output) {
  ++tokens_;
  std::string piece;
  append_text(output.token, piece);
  delta made;
  made.text = stops_.push(piece, tokens_ >= min_tokens_);
  if (stops_.matched()) {
    made.finish = finish_reason::stop;
    made.stop_string = stops_.matched();
  } else if (output.finish) {
    made.text += stops_.flush();
    made.finish = output.finish;
  }
  return made;
}

}  // namespace infernex::simulator
