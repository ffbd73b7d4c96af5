#include "monitor/recording.hpp"

#include <array>

#include "messages/view.hpp"

namespace infernex::monitor {

namespace {

constexpr std::string_view recording_magic = "IXHWREC1";
constexpr std::size_t record_head = 12;

void put_little_endian(char* to, std::uint64_t value, int bytes) {
  for (int i = 0; i < bytes; ++i) to[i] = static_cast<char>(value >> (8 * i) & 0xFF);
}

std::uint64_t get_little_endian(const char* from, int bytes) {
  std::uint64_t value = 0;
  for (int i = bytes; i-- > 0;) value = value << 8 | static_cast<unsigned char>(from[i]);
  return value;
}

}  // namespace

result<recorder> recorder::create(const std::string& file, std::uint64_t max_bytes) {
  recorder made;
  made.file_.open(file, std::ios::binary | std::ios::trunc);
  made.file_ << recording_magic << std::flush;
  if (!made.file_) return error{errc::system_error, "cannot write " + file};
  made.left_ = max_bytes > recording_magic.size() ? max_bytes - recording_magic.size() : 0;
  return made;
}

error recorder::write(std::uint64_t time_ns, std::span<const std::uint8_t> message) {
  if (full_ || message.size() + record_head > left_) {
    full_ = true;
    return {errc::too_large, "the recording has reached its limit"};
  }
  std::array<char, record_head> head{};
  put_little_endian(head.data(), time_ns, 8);
  put_little_endian(head.data() + 8, message.size(), 4);
  file_.write(head.data(), head.size());
  file_.write(reinterpret_cast<const char*>(message.data()), static_cast<std::streamsize>(message.size()));
  file_.flush();
  if (!file_) {
    full_ = true;
    return {errc::system_error, "the recording cannot be written any more"};
  }
  left_ -= message.size() + record_head;
  return {};
}

result<recording_reader> recording_reader::open(const std::string& file) {
  recording_reader made;
  made.file_.open(file, std::ios::binary);
  if (!made.file_) return error{errc::not_found, file};
  std::array<char, 8> magic{};
  made.file_.read(magic.data(), magic.size());
  if (!made.file_ || std::string_view(magic.data(), magic.size()) != recording_magic)
    return error{errc::malformed_input, file + " is not a recording of the hardware monitor"};
  return made;
}

bool recording_reader::next(recorded_message& into) {
  std::array<char, record_head> head{};
  file_.read(head.data(), head.size());
  if (file_.gcount() == 0) return false;
  const auto size = get_little_endian(head.data() + 8, 4);
  if (!file_ || size > max_message_bytes) {
    cut_off_ = true;
    return false;
  }
  into.time_ns = get_little_endian(head.data(), 8);
  into.bytes.resize(size);
  file_.read(reinterpret_cast<char*>(into.bytes.data()), static_cast<std::streamsize>(size));
  cut_off_ = !file_;
  return !cut_off_;
}

}  // namespace infernex::monitor
