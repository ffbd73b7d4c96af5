#include "actors/router/parameters.hpp"

#include <algorithm>
#include <cmath>

#include <boost/json/serialize.hpp>
#include <boost/json/value.hpp>

#include "messages/nearest.hpp"

namespace infernex::router {

namespace {

std::string text_of(double value) { return boost::json::serialize(boost::json::value(value)); }

std::string range(double min, double max) {
  const auto whole = [](double v) {
    return std::floor(v) == v && std::fabs(v) < 1e15 ? std::to_string(static_cast<long long>(v)) : text_of(v);
  };
  return "a number from " + whole(min) + " to " + whole(max);
}

}  // namespace

std::string did_you_mean(std::string_view word, const std::vector<std::string>& known) {
  const auto near = nearest(word, known);
  return near ? " (did you mean \"" + *near + "\"?)" : std::string();
}

const boost::json::value* parameters::find(std::string_view name, std::string default_value,
                                           std::string_view sentence) {
  asked_.push_back({std::string(name), std::move(default_value), std::string(sentence)});
  return given_.if_contains(name);
}

void parameters::complain(std::string_view name, std::string message) {
  problems_.push_back({path_ + "." + std::string(name), std::move(message)});
}

parameters& parameters::read(std::string_view name, double& into, double min, double max, std::string_view sentence) {
  const auto* value = find(name, text_of(into), sentence);
  if (!value) return *this;
  boost::system::error_code none;
  const auto number = value->is_number() ? value->to_number<double>(none) : NAN;
  if (none || !(number >= min && number <= max))
    complain(name, range(min, max) + ", not " + boost::json::serialize(*value));
  else
    into = number;
  return *this;
}

parameters& parameters::read(std::string_view name, std::uint64_t& into, std::uint64_t min, std::uint64_t max,
                             std::string_view sentence) {
  const auto* value = find(name, std::to_string(into), sentence);
  if (!value) return *this;
  boost::system::error_code failed;
  const auto number = value->is_number() ? value->to_number<std::uint64_t>(failed) : 0;
  if (!value->is_number() || failed || number < min || number > max)
    complain(name, "a whole number from " + std::to_string(min) + " to " + std::to_string(max) + ", not " +
                       boost::json::serialize(*value));
  else
    into = number;
  return *this;
}

parameters& parameters::read(std::string_view name, std::uint32_t& into, std::uint32_t min, std::uint32_t max,
                             std::string_view sentence) {
  std::uint64_t wide = into;
  read(name, wide, min, max, sentence);
  into = static_cast<std::uint32_t>(wide);
  return *this;
}

parameters& parameters::read(std::string_view name, bool& into, std::string_view sentence) {
  const auto* value = find(name, into ? "true" : "false", sentence);
  if (!value) return *this;
  if (value->is_bool())
    into = value->get_bool();
  else
    complain(name, "true or false, not " + boost::json::serialize(*value));
  return *this;
}

parameters& parameters::read(std::string_view name, std::string& into, std::string_view sentence) {
  const auto* value = find(name, into, sentence);
  if (!value) return *this;
  if (value->is_string())
    into = value->get_string();
  else
    complain(name, "a text, not " + boost::json::serialize(*value));
  return *this;
}

parameters& parameters::read(std::string_view name, std::vector<std::string>& into, std::string_view sentence) {
  const auto* value = find(name, "[]", sentence);
  if (!value) return *this;
  if (!value->is_array() ||
      !std::all_of(value->get_array().begin(), value->get_array().end(), [](const auto& v) { return v.is_string(); })) {
    complain(name, "a list of texts");
    return *this;
  }
  into.clear();
  for (const auto& one : value->get_array()) into.emplace_back(one.get_string());
  return *this;
}

parameters& parameters::read(std::string_view name, std::vector<std::pair<std::string, std::string>>& into,
                             std::string_view sentence) {
  const auto* value = find(name, "{}", sentence);
  if (!value) return *this;
  if (!value->is_object() || !std::all_of(value->get_object().begin(), value->get_object().end(),
                                          [](const auto& one) { return one.value().is_string(); })) {
    complain(name, "a mapping of texts");
    return *this;
  }
  into.clear();
  for (const auto& [key, text] : value->get_object()) into.emplace_back(key, text.get_string());
  return *this;
}

parameters& parameters::read_choice(std::string_view name, std::size_t& into,
                                    const std::vector<std::string_view>& words, std::string_view sentence) {
  std::string word(words[into]);
  read(name, word, sentence);
  const auto it = std::find(words.begin(), words.end(), word);
  if (it != words.end()) {
    into = static_cast<std::size_t>(it - words.begin());
    return *this;
  }
  std::string all;
  for (const auto w : words) all.append(all.empty() ? "" : ", ").append(w);
  complain(name, "one of " + all + ", not \"" + word + "\"");
  return *this;
}

parameters& parameters::below(std::string_view name, const std::function<void(parameters&)>& use,
                              std::string_view sentence) {
  static const boost::json::object none;
  const auto* value = find(name, "{}", sentence);
  if (value && !value->is_object()) {
    complain(name, "a mapping");
    return *this;
  }
  parameters inner(value ? value->get_object() : none, path_ + "." + std::string(name), problems_);
  use(inner);
  inner.finish();
  return *this;
}

parameters& parameters::each(std::string_view name, const std::function<void(parameters&)>& use,
                             std::string_view sentence) {
  const auto* value = find(name, "[]", sentence);
  if (!value) return *this;
  if (!value->is_array()) {
    complain(name, "a list of mappings");
    return *this;
  }
  std::size_t i = 0;
  for (const auto& one : value->get_array()) {
    const auto path = path_ + "." + std::string(name) + "[" + std::to_string(i++) + "]";
    if (!one.is_object()) {
      problems_.push_back({path, "a mapping"});
      continue;
    }
    parameters inner(one.get_object(), path, problems_);
    use(inner);
    inner.finish();
  }
  return *this;
}

parameters& parameters::ignore(std::string_view name, std::string_view why) {
  find(name, "-", why);
  return *this;
}

parameters& parameters::ignore_the_rest(std::string_view why) {
  for (const auto& [key, value] : given_) ignore(key, why);
  return *this;
}

void parameters::finish() {
  std::vector<std::string> known;
  for (const auto& one : asked_) known.push_back(one.name);
  for (const auto& [key, value] : given_)
    if (std::find(known.begin(), known.end(), std::string_view(key)) == known.end())
      complain(key, "an unknown parameter" + did_you_mean(key, known));
}

}  // namespace infernex::router
