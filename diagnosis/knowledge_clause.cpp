#include "diagnosis/knowledge_clause.hpp"

#include <algorithm>
#include <array>
#include <charconv>

#include "messages/nearest.hpp"

namespace infernex::diagnosis {

namespace {

using namespace std::chrono_literals;
using kind = clause::kind;

template <class Number>
std::optional<Number> parse_number(std::string_view text, int base = 10) {
  Number value{};
  const auto end = std::from_chars(text.data(), text.data() + text.size(), value, base);
  if (end.ec != std::errc{} || end.ptr != text.data() + text.size() || text.empty()) return std::nullopt;
  return value;
}

bool read_signed(config::section& at, std::string_view key, double& into) {
  if (!at.has(key)) return false;
  at.read(key, into, -1e18, 1e18);
  return true;
}

void read_metric(config::section& at, std::string_view key, metric& into) {
  std::string text;
  at.read(key, text);
  if (const auto found = monitor::find_metric(text)) {
    into = *found;
    return;
  }
  std::vector<std::string> names;
  for (std::size_t i = 1; i < monitor::metric_count; ++i)
    names.emplace_back(monitor::info(static_cast<metric>(i)).name);
  const auto near = nearest(text, names);
  at.complain(key, "there is no metric \"" + text + '"' + (near ? "; did you mean '" + *near + "'?" : ""));
}

void read_reference(config::section& at, clause& into) {
  if (!at.has("of")) return;
  std::string text;
  at.read("of", text);
  if (text == "most_of_node") {
    into.relative = clause::reference::most_of_node;
  } else if (text == "idle_power_10") {
    into.relative = clause::reference::idle_power_10;
  } else {
    into.relative = clause::reference::of_metric;
    read_metric(at, "of", into.to);
  }
}

/// The one comparison there must be.
void read_comparison(config::section& at, clause& into) {
  using c = clause::comparison;
  constexpr std::array<std::pair<std::string_view, c>, 6> words{{{"at_least", c::at_least},
                                                                 {"at_most", c::at_most},
                                                                 {"above", c::above},
                                                                 {"below", c::below},
                                                                 {"equals", c::equals},
                                                                 {"differs", c::differs}}};
  int found = 0;
  for (const auto& [word, meaning] : words)
    if (read_signed(at, word, into.limit)) {
      into.compare = meaning;
      ++found;
    }
  if (at.has("bits")) {
    std::string text;
    at.read("bits", text);
    const bool hexadecimal = text.starts_with("0x");
    const auto bits =
        parse_number<std::uint32_t>(std::string_view(text).substr(hexadecimal ? 2 : 0), hexadecimal ? 16 : 10);
    if (!bits || *bits == 0) at.complain("bits", "a number of which one bit at least is set, not \"" + text + "\"");
    into.limit = bits.value_or(0);
    into.compare = c::bits;
    ++found;
  }
  if (found != 1) at.complain("condition", "one of at_least, at_most, above, below, equals, differs, bits");
}

void read_metric_clause(config::section& at, clause& into) {
  read_metric(at, into.what == kind::rise ? "rise" : "metric", into.of);
  read_comparison(at, into);
  read_reference(at, into);
  at.read("times", into.times, 0, 1e6);
  read_signed(at, "plus", into.plus);
  at.read("slack", into.slack, 0, 1e9);
  at.read_choice("formula", into.by_formula,
                 {{"none", clause::formula::none}, {"pcie_replays", clause::formula::pcie_replays}});
}

void read_numbers(config::section& at, std::string_view key, std::vector<std::uint64_t>& into, int base) {
  std::vector<std::string> texts;
  at.read(key, texts);
  for (const auto& text : texts) {
    if (const auto number = parse_number<std::uint64_t>(text, base))
      into.push_back(*number);
    else
      at.complain(key, "not a code: \"" + text + "\"");
  }
}

template <class Enum, std::size_t N>
std::optional<Enum> find_word(const char* const* names, std::string_view word) {
  const auto same = [word](std::string_view name) {
    // CardDrop is written card_drop.
    std::size_t at = 0;
    for (std::size_t i = 0; i < name.size(); ++i) {
      const bool upper = name[i] >= 'A' && name[i] <= 'Z';
      if (upper && i > 0 && (at >= word.size() || word[at++] != '_')) return false;
      const char lower = upper ? static_cast<char>(name[i] - 'A' + 'a') : name[i];
      if (at >= word.size() || word[at++] != lower) return false;
    }
    return at == word.size();
  };
  for (std::size_t i = 0; i < N; ++i)
    if (same(names[i])) return static_cast<Enum>(i);
  return std::nullopt;
}

void read_event_clause(config::section& at, clause& into) {
  std::string word;
  at.read("event", word);
  if (const auto found = find_event_kind(word); found && *found != fb::HwEventKind::Unknown)
    into.event = *found;
  else
    at.complain("event", "there is no event \"" + word + '"');
  read_numbers(at, "codes", into.codes, 10);
  std::vector<std::string> levels;
  at.read("levels", levels);
  for (const auto& level : levels) {
    constexpr auto count = static_cast<std::size_t>(fb::HwLevel::MAX) + 1;
    if (const auto found = find_word<fb::HwLevel, count>(fb::EnumNamesHwLevel(), level))
      into.levels.push_back(*found);
    else
      at.complain("levels", "there is no level \"" + level + '"');
  }
  using c = clause::counting;
  at.read_choice("count", into.count,
                 {{"each", c::each},
                  {"same_unit", c::same_unit},
                  {"distinct_units", c::distinct_units},
                  {"distinct_devices", c::distinct_devices},
                  {"distinct_boots", c::distinct_boots}});
  read_millis(at, "burst", into.burst);
  read_numbers(at, "sticky", into.sticky, 10);
  read_millis(at, "sticky_burst", into.sticky_burst);
}

void read_failures(config::section& at, clause& into) {
  std::vector<std::string> texts;
  at.read("failure", texts);
  for (const auto& text : texts) {
    if (const auto number = parse_number<std::int64_t>(text))
      into.failures.push_back(*number);
    else
      at.complain("failure", "a number that a driver returns, not \"" + text + "\"");
  }
}

}  // namespace

std::optional<fb::HwEventKind> find_event_kind(std::string_view word) {
  constexpr auto count = static_cast<std::size_t>(fb::HwEventKind::MAX) + 1;
  return find_word<fb::HwEventKind, count>(fb::EnumNamesHwEventKind(), word);
}

void read_millis(config::section& at, std::string_view key, millis& into) {
  std::chrono::milliseconds value{into};
  at.read(key, value, 0ms, 720h);
  into = value.count();
}

clause read_clause(config::section& at) {
  clause out;
  constexpr std::array<std::pair<std::string_view, kind>, 8> words{{{"metric", kind::reading},
                                                                    {"rise", kind::rise},
                                                                    {"code", kind::code},
                                                                    {"event", kind::event},
                                                                    {"failure", kind::failure},
                                                                    {"silent", kind::silent},
                                                                    {"absent", kind::absent},
                                                                    {"anomaly", kind::anomaly}}};
  int found = 0;
  for (const auto& [word, what] : words)
    if (at.has(word)) {
      out.what = what;
      ++found;
    }
  if (found != 1) {
    at.complain("condition", "one of metric, rise, code, event, failure, silent, absent, anomaly");
    return out;
  }
  at.read("or_unknown", out.or_unknown).read("seen", out.seen, 1, 1'000'000);
  read_millis(at, "within", out.within);
  read_millis(at, "lasting", out.lasting);
  read_millis(at, "every", out.every);
  switch (out.what) {
    case kind::reading:
      read_metric_clause(at, out);
      break;
    case kind::rise:
      read_metric_clause(at, out);
      if (out.within == 0) at.complain("within", "a rise needs the time within which it counts");
      break;
    case kind::code:
      read_numbers(at, "code", out.codes, 16);
      if (out.codes.empty()) at.complain("code", "a list of Ascend codes, hexadecimal");
      break;
    case kind::event:
      read_event_clause(at, out);
      break;
    case kind::failure:
      read_failures(at, out);
      break;
    case kind::silent:
      read_millis(at, "silent", out.silence);
      break;
    case kind::absent: {
      bool absent = true;
      at.read("absent", absent);
      break;
    }
    case kind::anomaly: {
      using a = clause::anomaly_name;
      at.read_choice("anomaly", out.anomaly,
                     {{"warmer_than_peers", a::warmer_than_peers},
                      {"temperature_drift", a::temperature_drift},
                      {"power_unlike_peers", a::power_unlike_peers}});
      break;
    }
  }
  if (out.seen > 1 && out.within == 0) at.complain("seen", "needs `within`");
  return out;
}

}  // namespace infernex::diagnosis
