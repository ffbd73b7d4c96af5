#include <algorithm>
#include <array>

#include "monitor/npu_smi.hpp"
#include "monitor/text_scan.hpp"

// `npu-smi info -t TYPE`, `-m`, and what it says when it cannot.
namespace infernex::monitor {

namespace {

struct smi_key {
  std::string_view key;  // lower case, no blanks
  metric id;
  double scale = 1;
};

constexpr double smi_mebibyte = 1048576;
constexpr std::array smi_keys{
    smi_key{"nputemperature(c)", metric::Temperature},
    smi_key{"temperature(c)", metric::Temperature},
    smi_key{"hbmtemperature(c)", metric::MemoryTemperature},
    smi_key{"npureal-timepower(w)", metric::Power},
    smi_key{"powerdissipation(w)", metric::Power},
    smi_key{"hbmcapacity(mb)", metric::MemoryTotal, smi_mebibyte},
    smi_key{"hbmusagerate(%)", metric::MemoryUtilization},
    smi_key{"hbmbandwidthusagerate(%)", metric::MemoryBandwidthUtilization},
    smi_key{"hbmclockspeed(mhz)", metric::MemoryClock},
    smi_key{"ddrcapacity(mb)", metric::DdrTotal, smi_mebibyte},
    smi_key{"ddrusagerate(%)", metric::DdrUtilization},
    smi_key{"memoryusagerate(%)", metric::DdrUtilization},
    smi_key{"npuutilization(%)", metric::Utilization},
    smi_key{"aicoreusagerate(%)", metric::AicoreUtilization},
    smi_key{"aivectorusagerate(%)", metric::VectorUtilization},
    smi_key{"aicubeusagerate(%)", metric::CubeUtilization},
    smi_key{"aicpuusagerate(%)", metric::AicpuUtilization},
    smi_key{"ctrlcpuusagerate(%)", metric::ControlCpuUtilization},
    smi_key{"aicorefreq(mhz)", metric::RatedCoreClock},
    smi_key{"aicorecurfreq(mhz)", metric::CoreClock},
    smi_key{"hbmsinglebiterrorcount", metric::EccSingle},
    smi_key{"hbmdoublebiterrorcount", metric::EccDouble},
    smi_key{"hbmsinglebitaggregatetotalerrcnt", metric::EccSingleLifetime},
    smi_key{"hbmdoublebitaggregatetotalerrcnt", metric::EccDoubleLifetime},
    smi_key{"hbmsinglebitisolatedpagescount", metric::RetiredPagesSingle},
    smi_key{"hbmdoublebitisolatedpagescount", metric::RetiredPagesDouble},
    smi_key{"hbmdoublebitnext-isolatedpagescount", metric::RetiredPagesPending},
    smi_key{"hbmpendingretirepagecount", metric::RetiredPagesPending},
    smi_key{"ddrsinglebiterrorcount", metric::DdrEccSingle},
    smi_key{"ddrdoublebiterrorcount", metric::DdrEccDouble},
    smi_key{"retrycount", metric::PcieReplays},
};

std::string plain_key(std::string_view key) {
  std::string out;
  for (const char c : key)
    if (c != ' ' && c != '\t') out += static_cast<char>(c >= 'A' && c <= 'Z' ? c + 32 : c);
  return out;
}

bool is_given(std::string_view value) { return !value.empty() && value != "NA" && value != "-"; }

void take_text(std::string& into, std::string_view value) {
  if (is_given(value)) into = value;
}

/// `NA`: none; else hexadecimal numbers between blanks or commas.
std::optional<std::vector<std::uint64_t>> codes_of(std::string_view value) {
  std::vector<std::uint64_t> codes;
  if (value == "NA") return codes;
  for (const auto part : fields_of(value, ','))
    for (const auto word : words_of(part)) {
      const auto code = parse_hexadecimal(word);
      if (!code) return std::nullopt;
      if (*code != 0) codes.push_back(*code);
    }
  if (codes.empty()) return std::nullopt;
  return codes;
}

std::optional<double> word_value(std::string_view word, std::initializer_list<std::pair<std::string_view, double>> of) {
  for (const auto& [text, value] : of)
    if (word == text) return value;
  return std::nullopt;
}

/// A5: `event id=0x81AF8000, severity=2, …`, one a line.
void take_fault_event(smi_chip& to, std::string_view value) {
  constexpr std::string_view mark = "event id=";
  const auto at = value.find(mark);
  if (at == std::string_view::npos) return;
  auto number = value.substr(at + mark.size());
  number = trimmed(number.substr(0, number.find(',')));
  const auto code = parse_hexadecimal(number);
  if (!code) return;
  if (!to.codes) to.codes.emplace();
  to.codes->push_back(*code);
}

/// Whether the line said something of a chip.
bool take_value(smi_chip& to, const key_value& line) {
  const auto key = plain_key(line.key);
  const auto value = line.value;
  const auto known = std::ranges::find(smi_keys, std::string_view(key), &smi_key::key);
  if (known != smi_keys.end()) {
    if (const auto number = parse_number(value)) to.values.set(known->id, *number * known->scale);
    return true;
  }
  if (key == "healthstatus" || key == "health")
    to.values.set(metric::Health, word_value(value, {{"OK", 0}, {"Warning", 1}, {"Alarm", 2}, {"Critical", 3}}));
  else if (key == "compatibility")
    to.values.set(metric::Compatibility, word_value(value, {{"OK", 1}, {"NOK", 2}, {"UNKNOWN", 3}}));
  else if (key == "errorcode")
    to.codes = codes_of(value);
  else if (key == "faulteventcount" && parse_number(value) == 0.0)
    to.codes.emplace();
  else if (key == "faulteventinformation")
    take_fault_event(to, value);
  else if (key == "softwareversion")
    take_text(to.driver, value);
  else if (key == "firmwareversion")
    take_text(to.firmware, value);
  else if (key == "pciebusinfo")
    take_text(to.bus_id, value);
  else if (key == "serialnumber")
    take_text(to.serial, value);
  else if (key == "vdieid")
    take_text(to.id, value);
  else if (key == "boardid")
    take_text(to.board, value);
  else if (key == "chipname")
    take_text(to.name, value);
  else
    return false;
  return true;
}

/// Lines that are no value but an answer: not supported, or a driver that does not work.
bool take_answer(smi_page& page, std::string_view line) {
  if (line.find("does not support querying") != std::string_view::npos) {
    page.unsupported.emplace_back(line);
    return true;
  }
  const auto at = line.find("ret is -");
  if (at == std::string_view::npos) return false;
  std::string problem(line);
  if (line.find("-8005") != std::string_view::npos)
    problem += " (is the driver loaded, and are /dev/davinci* and /usr/local/dcmi mounted?)";
  if (line.find("-8020") != std::string_view::npos) problem += " (another container holds the device)";
  page.problems.push_back(std::move(problem));
  return true;
}

class smi_block_reader {
 public:
  explicit smi_block_reader(smi_page& into) : page_(into) {}

  void line(std::string_view text) {
    text = trimmed(text);
    if (text.empty() || take_answer(page_, text)) return;
    const auto parts = parse_key_value(text);
    if (!parts) return;
    const auto key = plain_key(parts->key);
    const auto number = parse_unsigned(parts->value);
    if (key == "npuid") {
      flush();
      if (number && *number <= 4095) now_.npu = static_cast<std::uint32_t>(*number);
      npu_ = now_.npu;
    } else if (key == "chipid") {
      if (number && *number <= 4095) chip(static_cast<std::uint32_t>(*number));
    } else {
      if (key == "chipname" && plain_key(parts->value) == "mcu") is_mcu_ = true;
      has_values_ = take_value(now_, *parts) || has_values_;
    }
  }
  void flush() {
    if (has_values_ && !is_mcu_) page_.chips.push_back(std::move(now_));
    now_ = {};
    now_.npu = npu_;
    has_values_ = false;
    is_mcu_ = false;
  }

 private:
  void chip(std::uint32_t number) {
    const bool ends_block = has_values_ && !now_.chip;
    if (!ends_block) flush();
    now_.chip = number;
    if (ends_block) flush();
  }

  smi_page& page_;
  smi_chip now_;
  std::uint32_t npu_ = 0;
  bool has_values_ = false;
  bool is_mcu_ = false;
};

}  // namespace

smi_page parse_npu_smi_values(std::string_view text) {
  smi_page page;
  smi_block_reader reader(page);
  while (!text.empty()) reader.line(next_line(text));
  reader.flush();
  return page;
}

std::vector<smi_mapping> parse_npu_smi_mapping(std::string_view text) {
  std::vector<smi_mapping> all;
  while (!text.empty()) {
    const auto words = words_of(next_line(text));
    if (words.size() < 4) continue;
    const auto npu = parse_unsigned(words[0]);
    const auto chip = parse_unsigned(words[1]);
    const auto logic = parse_unsigned(words[2]);
    if (!npu || !chip || !logic || *npu > 4095 || *chip > 4095 || *logic > 4095) continue;
    smi_mapping one{static_cast<std::uint32_t>(*npu), static_cast<std::uint32_t>(*chip),
                    static_cast<std::uint32_t>(*logic), std::string(words[3])};
    for (std::size_t i = 4; i < words.size(); ++i) one.name += " " + std::string(words[i]);
    all.push_back(std::move(one));
  }
  return all;
}

reading_round to_round(const smi_page& page, const std::vector<smi_mapping>& mapping) {
  reading_round found;
  found.problems = page.problems;
  std::uint32_t place = 0;
  for (const auto& chip : page.chips) {
    const auto same = [&](const smi_mapping& one) { return one.npu == chip.npu && one.chip == chip.chip.value_or(0); };
    const auto known = std::ranges::find_if(mapping, same);
    const auto index = known != mapping.end() ? known->logic_id : place;
    ++place;
    auto& device = found.devices.emplace_back();
    device.index = index;
    device.vendor = fb::HwVendor::Ascend;
    device.id = chip.id;
    device.values = chip.values;
    device.codes = chip.codes;
    auto& info = found.infos.emplace_back();
    info.index = index;
    info.vendor = fb::HwVendor::Ascend;
    info.model = chip.name;
    info.bus_id = chip.bus_id;
    info.id = chip.id;
    info.serial = chip.serial;
    info.driver = chip.driver;
    info.firmware = chip.firmware;
    info.board = chip.board;
  }
  return found;
}

}  // namespace infernex::monitor
