#pragma once

#include <atomic>
#include <chrono>
#include <cstdint>
#include <initializer_list>
#include <string>
#include <string_view>
#include <type_traits>

namespace infernex::log {

enum class level : std::uint8_t { debug, info, warn, error, off };

/// One `key=value` of a log line. Values are quoted where they need it.
struct field {
  field(std::string_view k, std::string_view v) : key(k), value(v) {}
  field(std::string_view k, const char* v) : key(k), value(v) {}
  field(std::string_view k, const std::string& v) : key(k), value(v) {}
  field(std::string_view k, double v);
  template <class Integer>
  requires std::is_integral_v<Integer> field(std::string_view k, Integer v) : key(k), value(std::to_string(v)) {}
  std::string_view key;
  std::string value;
};

/// Sets level, and the identity (`router`, `agent/engine-0`) that starts every line. Lines go to stderr.
void configure(level threshold, std::string_view identity);
level threshold();

/// One structured line a state change: `2026-11-21T10:00:00.000Z info agent engine is ready instance=e0`.
/// Nothing per request at info.
void write(level severity, std::string_view event, std::initializer_list<field> fields = {});

/// What write() sends behind the time stamp. Values are cut at 1 KiB; control characters are escaped.
std::string render(level severity, std::string_view identity, std::string_view event,
                   std::initializer_list<field> fields);

inline void debug(std::string_view event, std::initializer_list<field> fields = {}) {
  write(level::debug, event, fields);
}
inline void info(std::string_view event, std::initializer_list<field> fields = {}) {
  write(level::info, event, fields);
}
inline void warn(std::string_view event, std::initializer_list<field> fields = {}) {
  write(level::warn, event, fields);
}
inline void error(std::string_view event, std::initializer_list<field> fields = {}) {
  write(level::error, event, fields);
}

/// For causes that repeat: lets one line through per interval, with the number held back meanwhile.
/// `static log::limiter bad_buffers; if (auto n = bad_buffers.admit()) log::warn(…, {{"repeated", *n}})`.
class limiter {
 public:
  explicit limiter(std::chrono::milliseconds interval = std::chrono::seconds(5)) : interval_(interval) {}
  /// The number of occurrences since the last admitted one, this one included; 0 = hold the line back.
  std::uint64_t admit(std::chrono::steady_clock::time_point now = std::chrono::steady_clock::now());

 private:
  std::chrono::milliseconds interval_;
  std::atomic<std::int64_t> next_{0};
  std::atomic<std::uint64_t> held_{0};
};

}  // namespace infernex::log
