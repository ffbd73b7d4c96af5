#pragma once

#include <cstdint>
#include <fstream>
#include <span>
#include <string>
#include <vector>

#include "messages/result.hpp"

namespace infernex::monitor {

/// A recording: the eight bytes `IXHWREC1`, then for every message its time (nanoseconds since 1970) and its length as
/// little-endian 8 and 4 bytes, then the message as it was on the bus. A file that was cut off ends at its last whole
/// message.
class recorder {
 public:
  /// Begins a new file; stops, and says so by full(), before it is larger than `max_bytes`.
  /// Errors: system_error.
  static result<recorder> create(const std::string& file, std::uint64_t max_bytes);
  /// Errors: too_large (the file is full; the message is not in it), system_error.
  error write(std::uint64_t time_ns, std::span<const std::uint8_t> message);
  bool full() const { return full_; }

 private:
  recorder() = default;
  std::ofstream file_;
  std::uint64_t left_ = 0;
  bool full_ = false;
};

struct recorded_message {
  std::uint64_t time_ns = 0;
  std::vector<std::uint8_t> bytes;
};

class recording_reader {
 public:
  /// Errors: not_found, malformed_input (not a recording).
  static result<recording_reader> open(const std::string& file);
  /// The next message; false at the end. See cut_off().
  bool next(recorded_message& into);
  /// It ended in the middle of a message, or with a length that cannot be.
  bool cut_off() const { return cut_off_; }

 private:
  recording_reader() = default;
  std::ifstream file_;
  bool cut_off_ = false;
};

}  // namespace infernex::monitor
