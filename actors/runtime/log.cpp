#include "actors/runtime/log.hpp"

#include <array>
#include <cstdio>
#include <memory>
#include <mutex>

#include <spdlog/logger.h>
#include <spdlog/pattern_formatter.h>
#include <spdlog/sinks/stdout_sinks.h>

namespace infernex::log {

namespace {

/// A value longer than this is cut: a log line is no place for a body.
constexpr std::size_t longest_value = 1024;

struct sink_state {
  sink_state() : logger("infernex", std::make_shared<spdlog::sinks::stderr_sink_mt>()) {
    logger.set_formatter(
        std::make_unique<spdlog::pattern_formatter>("%Y-%m-%dT%H:%M:%S.%eZ %v", spdlog::pattern_time_type::utc));
    logger.set_level(spdlog::level::trace);
  }
  std::atomic<level> threshold{level::info};
  std::mutex mutex;  // guards identity
  std::string identity = "infernex";
  spdlog::logger logger;
};

sink_state& state() {
  // Never destroyed: NATS's threads and static destructors may still write while the process ends.
  static sink_state& instance = *new sink_state;
  return instance;
}

std::string_view name(level severity) {
  static constexpr std::array<std::string_view, 5> names{"debug", "info", "warn", "error", "off"};
  return names[static_cast<std::size_t>(severity)];
}

/// Keeps a line one line, and a terminal safe from what strangers send.
void append_escaped(std::string& line, std::string_view text, bool quoted) {
  for (const char c : text) {
    if (c == '\n') {
      line += "\\n";
    } else if (c == '\r') {
      line += "\\r";
    } else if (c == '\t') {
      line += "\\t";
    } else if (quoted && (c == '"' || c == '\\')) {
      line += '\\';
      line += c;
    } else if (static_cast<unsigned char>(c) < 0x20 || c == 0x7f) {
      std::array<char, 5> hex{};
      std::snprintf(hex.data(), hex.size(), "\\x%02x", static_cast<unsigned>(c));
      line += hex.data();
    } else {
      line += c;
    }
  }
}

bool needs_quotes(std::string_view value) {
  if (value.empty()) return true;
  for (const char c : value)
    if (static_cast<unsigned char>(c) <= 0x20 || c == 0x7f || c == '"' || c == '=' || c == '\\') return true;
  return false;
}

void append_value(std::string& line, std::string_view value) {
  const bool cut = value.size() > longest_value;
  if (cut) {
    std::size_t end = longest_value;
    while (end > 0 && (static_cast<unsigned char>(value[end]) & 0xC0U) == 0x80U) --end;  // not inside a UTF-8 character
    value = value.substr(0, end);
  }
  if (!cut && !needs_quotes(value)) {
    line += value;
    return;
  }
  line += '"';
  append_escaped(line, value, true);
  line += cut ? "...\"" : "\"";
}

}  // namespace

field::field(std::string_view k, double v) : key(k) {
  std::array<char, 32> text{};
  std::snprintf(text.data(), text.size(), "%.6g", v);
  value = text.data();
}

void configure(level threshold, std::string_view identity) {
  auto& sink = state();
  sink.threshold.store(threshold, std::memory_order_relaxed);
  const std::lock_guard lock(sink.mutex);
  sink.identity = identity;
}

level threshold() { return state().threshold.load(std::memory_order_relaxed); }

std::string render(level severity, std::string_view identity, std::string_view event,
                   std::initializer_list<field> fields) {
  std::string line(name(severity));
  line += ' ';
  append_escaped(line, identity, false);
  line += ' ';
  append_escaped(line, event, false);
  for (const auto& f : fields) {
    line += ' ';
    line += f.key;
    line += '=';
    append_value(line, f.value);
  }
  return line;
}

void write(level severity, std::string_view event, std::initializer_list<field> fields) {
  auto& sink = state();
  if (severity == level::off || severity < sink.threshold.load(std::memory_order_relaxed)) return;
  std::string identity;
  {
    const std::lock_guard lock(sink.mutex);
    identity = sink.identity;
  }
  const auto line = render(severity, identity, event, fields);
  sink.logger.log(spdlog::level::info, spdlog::string_view_t(line.data(), line.size()));
}

std::uint64_t limiter::admit(std::chrono::steady_clock::time_point now) {
  held_.fetch_add(1, std::memory_order_relaxed);
  const auto at = std::chrono::duration_cast<std::chrono::nanoseconds>(now.time_since_epoch()).count();
  auto next = next_.load(std::memory_order_relaxed);
  if (at < next) return 0;
  const auto after = at + std::chrono::duration_cast<std::chrono::nanoseconds>(interval_).count();
  // Of the threads that find the interval over, one wins; what the others counted goes into its line or the next.
  if (!next_.compare_exchange_strong(next, after, std::memory_order_relaxed)) return 0;
  return held_.exchange(0, std::memory_order_relaxed);
}

}  // namespace infernex::log
