#include "monitor/kernel_log.hpp"

#include <array>

#include "monitor/text_scan.hpp"

namespace infernex::monitor {

namespace {

constexpr std::size_t max_event_text = 1024;
constexpr std::uint64_t most_npus = 64;

/// The text behind `mark`, if it is there.
std::optional<std::string_view> behind(std::string_view line, std::string_view mark) {
  const auto at = line.find(mark);
  if (at == std::string_view::npos) return std::nullopt;
  return line.substr(at + mark.size());
}

std::string_view digits_of(std::string_view text) {
  std::size_t end = 0;
  while (end < text.size() && text[end] >= '0' && text[end] <= '9') ++end;
  return text.substr(0, end);
}

hw_event kernel_event(std::string_view line, fb::HwEventKind kind, fb::HwLevel level = fb::HwLevel::Unknown) {
  hw_event event;
  event.kind = kind;
  event.level = level;
  event.source = fb::HwSource::KernelLog;
  const auto text = line.substr(0, max_event_text);
  event.text = text;
  return event;
}

/// `GPC 0, TPC 1`, where the line names them.
std::string unit_of(std::string_view line) {
  const auto gpc = behind(line, "GPC ");
  const auto tpc = behind(line, "TPC ");
  if (!gpc || !tpc || digits_of(*gpc).empty() || digits_of(*tpc).empty()) return {};
  return "GPC " + std::string(digits_of(*gpc)) + ", TPC " + std::string(digits_of(*tpc));
}

/// Fatal or Nonfatal, as the line itself says it: the number alone does not tell.
void take_gravity(std::string_view line, hw_event& event) {
  for (const auto word : words_of(line)) {
    if (word == "Fatal" || word == "Fatal,") event.fatal = true;
    if (word == "Nonfatal" || word == "Non-fatal" || word == "Non-fatal,") event.fatal = false;
  }
}

/// `(0x004505c6 0x00000000 …)`.
void take_words(std::string_view line, hw_event& event) {
  const auto list = behind(line, "(0x");
  if (!list) return;
  const auto inside = list->substr(0, list->find(')'));
  for (const auto part : words_of(inside)) {
    const auto word = part.ends_with(',') ? part.substr(0, part.size() - 1) : part;
    const auto number = parse_hexadecimal(word);
    if (!number || event.words.size() >= 16) return;
    event.words.push_back(*number);
  }
}

/// From behind `Xid ` or `SXid `: `(PCI:0000:03:00): 14, pid=1234, name=python3, …`; older ones have no `PCI:`.
std::optional<hw_event> parse_xid(std::string_view line, std::string_view rest, fb::HwEventKind kind) {
  if (!rest.starts_with('(')) return std::nullopt;
  const auto end = rest.find("): ");
  if (end == std::string_view::npos) return std::nullopt;
  auto bus = rest.substr(1, end - 1);
  if (bus.starts_with("PCI:")) bus.remove_prefix(4);
  if (bus.empty() || bus.size() > 32 || bus.find_first_not_of("0123456789abcdefABCDEF:.") != std::string_view::npos)
    return std::nullopt;
  rest.remove_prefix(end + 3);
  const auto number = parse_unsigned(digits_of(rest));
  if (!number) return std::nullopt;
  auto event = kernel_event(line, kind);
  event.vendor = fb::HwVendor::Nvidia;
  event.bus_id = bus;
  event.code = *number;
  if (const auto pid = behind(rest, "pid="))
    if (const auto value = parse_unsigned(digits_of(*pid)); value && *value <= 0xFFFFFFFF)
      event.pid = static_cast<std::uint32_t>(*value);
  if (const auto name = behind(rest, "name=")) event.process = std::string(trimmed(name->substr(0, name->find(','))));
  event.unit = unit_of(rest);
  take_gravity(rest, event);
  take_words(rest, event);
  return event;
}

/// A device number that no node has is not one (the fixture has 1000 and 10000): then nobody can tell which.
hw_event parse_heartbeat(std::string_view line, std::string_view rest) {
  auto event = kernel_event(line, fb::HwEventKind::HeartbeatLost, fb::HwLevel::Critical);
  event.vendor = fb::HwVendor::Ascend;
  if (const auto device = parse_unsigned(digits_of(rest)); device && *device < most_npus)
    event.device = static_cast<std::uint32_t>(*device);
  return event;
}

fb::HwLevel level_of_word(std::string_view rest) {
  const auto words = words_of(rest);
  const auto word = words.empty() ? std::string_view{} : words[0];
  if (word == "fatal" || word.starts_with("Uncorrected-Fatal") || word == "Fatal") return fb::HwLevel::Critical;
  if (word == "recoverable" || word.starts_with("Uncorrected")) return fb::HwLevel::Major;
  if (word == "corrected" || word.starts_with("Corrected")) return fb::HwLevel::Hint;
  return fb::HwLevel::Unknown;
}

/// `pcieport 0000:00:01.0: PCIe Bus Error: severity=Corrected, type=…`.
hw_event parse_aer(std::string_view line, std::string_view rest) {
  auto gravity = trimmed(rest);
  if (gravity.starts_with("severity=")) gravity.remove_prefix(9);
  gravity = gravity.substr(0, gravity.find(','));
  auto event = kernel_event(line, fb::HwEventKind::PcieAer,
                            gravity.find("Fatal") != std::string_view::npos && !gravity.starts_with("Corrected") &&
                                    gravity.find("Non-Fatal") == std::string_view::npos
                                ? fb::HwLevel::Critical
                                : level_of_word(gravity));
  const auto before = line.substr(0, line.find(": PCIe Bus Error:"));
  const auto words = words_of(before);
  if (!words.empty() && words.back().find(':') != std::string_view::npos) event.bus_id = std::string(words.back());
  return event;
}

}  // namespace

std::optional<hw_event> parse_kernel_line(std::string_view line) {
  if (const auto rest = behind(line, "NVRM: Xid ")) return parse_xid(line, *rest, fb::HwEventKind::Xid);
  if (const auto rest = behind(line, "SXid ")) return parse_xid(line, *rest, fb::HwEventKind::Sxid);
  if (line.find("[heart_beat_judge") != std::string_view::npos)
    if (const auto rest = behind(line, "Heartbeat lost! (device=")) return parse_heartbeat(line, *rest);
  if (const auto rest = behind(line, "[Hardware Error]: event severity:"))
    return kernel_event(line, fb::HwEventKind::HostError, level_of_word(*rest));
  if (const auto rest = behind(line, "PCIe Bus Error:")) return parse_aer(line, *rest);
  if (line.find("blocked for more than ") != std::string_view::npos && behind(line, "task "))
    return kernel_event(line, fb::HwEventKind::HungTask, fb::HwLevel::Major);
  const bool file_system =
      line.find("EXT4-fs error") != std::string_view::npos ||
      (line.find("XFS (") != std::string_view::npos && (behind(line, "Corruption") || behind(line, "Internal error")));
  if (file_system) return kernel_event(line, fb::HwEventKind::FileSystemError, fb::HwLevel::Major);
  return std::nullopt;
}

}  // namespace infernex::monitor
