#include <algorithm>
#include <array>

#include "monitor/npu_smi.hpp"
#include "monitor/text_scan.hpp"

// The table of `npu-smi info`.
namespace infernex::monitor {

namespace {

enum class smi_column : std::uint8_t {
  npu,
  name,
  chip,
  physical_id,
  bus_id,
  health,
  power,
  temperature,
  hugepages,
  aicore,
  npu_utilization,
  memory,
  hbm,
  unknown
};

struct smi_heading {
  std::string_view text;
  smi_column column;
};

// Longer headings before those they begin with.
constexpr std::array smi_headings{
    smi_heading{"NPU Util(%)", smi_column::npu_utilization},
    smi_heading{"NPU ID", smi_column::npu},
    smi_heading{"NPU", smi_column::npu},
    smi_heading{"Name", smi_column::name},
    smi_heading{"Chip", smi_column::chip},
    smi_heading{"Phy-ID", smi_column::physical_id},
    smi_heading{"Device", smi_column::physical_id},
    smi_heading{"Bus-Id", smi_column::bus_id},
    smi_heading{"Health", smi_column::health},
    smi_heading{"Power(W)", smi_column::power},
    smi_heading{"Temp(C)", smi_column::temperature},
    smi_heading{"Hugepages-Usage(page)", smi_column::hugepages},
    smi_heading{"AICore(%)", smi_column::aicore},
    smi_heading{"Memory-Usage(MB)", smi_column::memory},
    smi_heading{"HBM-Usage(MB)", smi_column::hbm},
};

using smi_header = std::vector<std::vector<smi_column>>;  // by cell

std::vector<smi_column> columns_of(std::string_view cell) {
  std::vector<smi_column> columns;
  while (!(cell = trimmed(cell)).empty()) {
    const auto known =
        std::ranges::find_if(smi_headings, [cell](const auto& one) { return cell.starts_with(one.text); });
    if (known != smi_headings.end()) {
      columns.push_back(known->column);
      cell.remove_prefix(known->text.size());
      continue;
    }
    columns.push_back(smi_column::unknown);
    cell.remove_prefix(std::min(cell.find(' '), cell.size()));
  }
  return columns;
}

/// The words of a cell, with '/' a word of its own: `61958/ 65536` is three.
std::vector<std::string_view> smi_words(std::string_view cell) {
  std::vector<std::string_view> words;
  for (auto word : words_of(cell)) {
    for (auto at = word.find('/'); at != std::string_view::npos; at = word.find('/')) {
      if (at > 0) words.push_back(word.substr(0, at));
      words.push_back("/");
      word.remove_prefix(at + 1);
    }
    if (!word.empty()) words.push_back(word);
  }
  return words;
}

bool is_usage(smi_column column) {
  return column == smi_column::hugepages || column == smi_column::memory || column == smi_column::hbm;
}

std::optional<std::uint32_t> small_number(std::string_view word) {
  const auto value = parse_unsigned(word);
  if (!value || *value > 4095) return std::nullopt;
  return static_cast<std::uint32_t>(*value);
}

std::optional<double> health_value(std::string_view word) {
  constexpr std::array words{"OK", "Warning", "Alarm", "Critical"};
  for (std::size_t i = 0; i < words.size(); ++i)
    if (word == words[i]) return static_cast<double>(i);
  return std::nullopt;
}

void set_usage(smi_chip& to, metric used, metric total, std::string_view first, std::string_view second) {
  constexpr double mebibyte = 1048576;
  const auto a = parse_number(first);
  const auto b = parse_number(second);
  if (!a || !b || *b <= 0 || *a > *b) return;  // 0 / 0: there is none of it
  to.values.set(used, *a * mebibyte);
  to.values.set(total, *b * mebibyte);
}

void set_column(smi_chip& to, smi_column column, std::span<const std::string_view> words) {
  const auto word = words.empty() ? std::string_view{} : words[0];
  const auto second = words.size() == 3 ? words[2] : std::string_view{};
  switch (column) {
    case smi_column::name:
      for (const auto one : words) to.name += (to.name.empty() ? "" : " ") + std::string(one);
      break;
    case smi_column::chip:
      to.chip = small_number(word);
      break;
    case smi_column::physical_id:
      to.physical_id = small_number(word);
      break;
    case smi_column::bus_id:
      if (word != "NA" && word != "-") to.bus_id = word;
      break;
    case smi_column::health:
      to.values.set(metric::Health, health_value(word));
      break;
    case smi_column::power:
      to.values.set(metric::Power, parse_number(word));
      break;
    case smi_column::temperature:
      to.values.set(metric::Temperature, parse_number(word));
      break;
    case smi_column::aicore:
      to.values.set(metric::AicoreUtilization, parse_number(word));
      break;
    case smi_column::npu_utilization:
      to.values.set(metric::Utilization, parse_number(word));
      break;
    case smi_column::memory:
      set_usage(to, metric::DdrUsed, metric::DdrTotal, word, second);
      break;
    case smi_column::hbm:
      set_usage(to, metric::MemoryUsed, metric::MemoryTotal, word, second);
      break;
    default:
      break;
  }
}

/// A cell's values in the order of its columns; a name takes what the others leave.
void read_cell(smi_chip& to, const std::vector<smi_column>& columns, std::span<const std::string_view> words) {
  std::size_t at = 0;
  for (std::size_t c = 0; c < columns.size() && at < words.size(); ++c) {
    std::size_t count = 1;
    if (is_usage(columns[c]) && at + 2 < words.size() && words[at + 1] == "/") count = 3;
    if (columns[c] == smi_column::name) {
      const auto later = columns.size() - c - 1;
      count = words.size() - at > later ? words.size() - at - later : 1;
    }
    set_column(to, columns[c], words.subspan(at, std::min(count, words.size() - at)));
    at += count;
  }
}

bool contains_column(const smi_header& header, smi_column column) {
  return std::ranges::any_of(header,
                             [column](const auto& cell) { return std::ranges::find(cell, column) != cell.end(); });
}

class smi_table_reader {
 public:
  explicit smi_table_reader(smi_page& into) : page_(into) {}

  void line(std::string_view text) {
    text = trimmed(text);
    if (text.starts_with('+')) {
      if (text.find('=') != std::string_view::npos) in_header_ = false;
      return;
    }
    if (!text.starts_with('|')) return;
    text.remove_prefix(1);
    if (text.ends_with('|')) text.remove_suffix(1);
    const auto cells = fields_of(text, '|');
    if (text.find("Process id") != std::string_view::npos) {
      in_processes_ = true;
      in_header_ = false;
      return;
    }
    if (in_processes_) return process(cells, text);
    if (in_header_) return header(cells, text);
    row(cells);
  }

 private:
  void header(const std::vector<std::string_view>& cells, std::string_view text) {
    if (text.find("Version:") != std::string_view::npos) {
      const auto words = words_of(text);
      if (words.size() > 1) page_.version = words[1];
      return;
    }
    smi_header columns;
    for (const auto cell : cells) columns.push_back(columns_of(cell));
    headers_.push_back(std::move(columns));
  }

  void row(const std::vector<std::string_view>& cells) {
    if (headers_.empty()) return;
    const auto& header = headers_[next_];
    std::vector<std::vector<std::string_view>> words;
    for (const auto cell : cells) words.push_back(smi_words(cell));
    if (contains_column(header, smi_column::npu)) {
      const auto npu = words[0].empty() ? std::nullopt : small_number(words[0][0]);
      if (!npu) return;  // not a row of the table: wait for one
      page_.chips.emplace_back().npu = *npu;
    } else if (page_.chips.empty()) {
      return;
    }
    for (std::size_t i = 0; i < header.size() && i < words.size(); ++i)
      read_cell(page_.chips.back(), header[i], words[i]);
    next_ = (next_ + 1) % headers_.size();
  }

  void process(const std::vector<std::string_view>& cells, std::string_view text) {
    constexpr std::string_view none = "No running processes found in NPU ";
    if (const auto at = text.find(none); at != std::string_view::npos) {
      const auto words = words_of(text.substr(at + none.size()));
      const auto npu = words.empty() ? std::nullopt : small_number(words[0]);
      for (auto& chip : page_.chips)
        if (npu && chip.npu == *npu) chip.values.set(metric::ProcessCount, 0);
      return;
    }
    const auto words = words_of(cells[0]);
    if (words.empty() || cells.size() < 2 || !parse_unsigned(cells[1])) return;
    const auto npu = small_number(words[0]);
    const auto on_chip = words.size() > 1 ? small_number(words[1]) : std::optional<std::uint32_t>(0);
    for (auto& chip : page_.chips)
      if (npu && chip.npu == *npu && chip.chip.value_or(0) == on_chip)
        chip.values.set(metric::ProcessCount, chip.values.get(metric::ProcessCount).value_or(0) + 1);
  }

  smi_page& page_;
  std::vector<smi_header> headers_;
  std::size_t next_ = 0;
  bool in_header_ = true;
  bool in_processes_ = false;
};

}  // namespace

smi_page parse_npu_smi_table(std::string_view text) {
  smi_page page;
  smi_table_reader reader(page);
  while (!text.empty()) reader.line(next_line(text));
  return page;
}

}  // namespace infernex::monitor
