#include "actors/proxy/metrics_merge.hpp"

#include <algorithm>
#include <array>
#include <charconv>
#include <cmath>
#include <limits>

namespace infernex::proxy {
namespace {

std::string_view next_word(std::string_view& line) {
  const auto begin = std::min(line.find_first_not_of(" \t"), line.size());
  line.remove_prefix(begin);
  const auto word = line.substr(0, line.find_first_of(" \t"));
  line.remove_prefix(word.size());
  return word;
}

/// Behind the closing brace of the labels that start at `at`, or npos.
std::size_t labels_end(std::string_view line, std::size_t at) {
  bool quoted = false;
  for (; at < line.size(); ++at) {
    if (quoted && line[at] == '\\') {
      ++at;
    } else if (line[at] == '"') {
      quoted = !quoted;
    } else if (!quoted && line[at] == '}') {
      return at + 1;
    }
  }
  return std::string_view::npos;
}

double number(std::string_view word) {
  if (word == "+Inf") return std::numeric_limits<double>::infinity();
  double value = std::nan("");
  const auto [end, problem] = std::from_chars(word.data(), word.data() + word.size(), value);
  return problem == std::errc{} && end == word.data() + word.size() ? value : std::nan("");
}

bool is_share(std::string_view name) {
  return name.ends_with("_perc") || name.ends_with("_usage") || name.ends_with("_rate");
}
bool keeps_largest(std::string_view name) { return name.ends_with("_info") || name.ends_with("_created"); }

std::string shown(double value) {
  if (std::isinf(value)) return value > 0 ? "+Inf" : "-Inf";
  std::array<char, 32> text{};
  const auto end = std::to_chars(text.data(), text.data() + text.size(), value).ptr;
  return {text.data(), end};
}

}  // namespace

/// Samples of a histogram or summary belong to the family that was announced without their suffix.
std::string_view metrics_merge::family_name(std::string_view sample_name) const {
  for (const std::string_view suffix : {"_bucket", "_sum", "_count"}) {
    if (!sample_name.ends_with(suffix)) continue;
    const auto base = sample_name.substr(0, sample_name.size() - suffix.size());
    if (families_.count(base)) return base;
  }
  return sample_name;
}

void metrics_merge::note_comment(std::string_view line) {
  auto rest = line;
  next_word(rest);
  const auto kind = next_word(rest);
  const auto name = next_word(rest);
  if ((kind != "HELP" && kind != "TYPE") || name.find(':') == std::string_view::npos) return;
  auto known = families_.find(name);
  if (known == families_.end()) {
    if (families_.size() >= max_series_) {
      ++refused_;
      return;
    }
    known = families_.emplace(name, family{}).first;
  }
  auto& comments = known->second.comments;
  const auto mark = "# " + std::string(kind) + ' ';
  if (comments.find(mark) == std::string::npos) comments.append(line).append("\n");
}

void metrics_merge::add(std::string_view page) {
  while (!page.empty()) {
    const auto line = page.substr(0, page.find('\n'));
    page.remove_prefix(std::min(page.size(), line.size() + 1));
    if (line.starts_with("#")) {
      note_comment(line);
      continue;
    }
    const auto name_end = line.find_first_of("{ \t");
    if (name_end == std::string_view::npos) continue;
    const auto name = line.substr(0, name_end);
    const auto end = line[name_end] == '{' ? labels_end(line, name_end) : name_end;
    if (end == std::string_view::npos || name.find(':') == std::string_view::npos) continue;
    auto rest = line.substr(end);
    const auto value = number(next_word(rest));
    if (std::isnan(value)) continue;
    const auto sample = line.substr(0, end);
    const auto family_of_it = family_name(name);
    auto known = families_.find(family_of_it);
    const bool there = known != families_.end() && known->second.samples.count(sample);
    if (!there && (series_ >= max_series_ || (known == families_.end() && families_.size() >= max_series_))) {
      ++refused_;
      continue;
    }
    if (known == families_.end()) known = families_.emplace(family_of_it, family{}).first;
    if (!there) ++series_;
    auto& s = known->second.samples.try_emplace(std::string(sample)).first->second;
    s.value = keeps_largest(name) && s.pages > 0 ? std::max(s.value, value) : s.value + value;
    ++s.pages;
  }
}

std::string metrics_merge::render() const {
  std::string out;
  for (const auto& [name, f] : families_) {
    if (f.samples.empty()) continue;
    out += f.comments;
    for (const auto& [sample, s] : f.samples)
      (out += sample + ' ' + shown(is_share(name) ? s.value / static_cast<double>(s.pages) : s.value)) += '\n';
  }
  return out;
}

}  // namespace infernex::proxy
