#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include <msgpuck.h>

namespace infernex::test {

/// Bytes written as hexadecimal digits.
inline std::vector<std::uint8_t> unhex(std::string_view digits) {
  const auto digit = [](char c) { return static_cast<std::uint8_t>(c <= '9' ? c - '0' : c - 'a' + 10); };
  std::vector<std::uint8_t> bytes;
  for (std::size_t i = 0; i + 1 < digits.size(); i += 2)
    bytes.push_back(static_cast<std::uint8_t>(digit(digits[i]) << 4 | digit(digits[i + 1])));
  return bytes;
}

/// Writes msgpack by hand, so that tests decide every byte of a batch.
class msgpack_writer {
 public:
  msgpack_writer& array(std::uint32_t size) { return put(mp_encode_array(room(), size)); }
  msgpack_writer& map(std::uint32_t size) { return put(mp_encode_map(room(), size)); }
  msgpack_writer& number(std::uint64_t value) { return put(mp_encode_uint(room(), value)); }
  msgpack_writer& negative(std::int64_t value) { return put(mp_encode_int(room(), value)); }
  msgpack_writer& real(double value) { return put(mp_encode_double(room(), value)); }
  msgpack_writer& nil() { return put(mp_encode_nil(room())); }
  msgpack_writer& text(std::string_view value) {
    return put(mp_encode_str(room(value.size()), value.data(), static_cast<std::uint32_t>(value.size())));
  }
  msgpack_writer& binary(std::string_view value) {
    return put(mp_encode_bin(room(value.size()), value.data(), static_cast<std::uint32_t>(value.size())));
  }
  msgpack_writer& numbers(const std::vector<std::uint64_t>& values) {
    array(static_cast<std::uint32_t>(values.size()));
    for (const auto value : values) number(value);
    return *this;
  }
  const std::vector<std::uint8_t>& bytes() const { return bytes_; }

 private:
  char* room(std::size_t more = 0) {
    used_ = bytes_.size();
    bytes_.resize(used_ + more + 16);
    return reinterpret_cast<char*>(bytes_.data()) + used_;
  }
  msgpack_writer& put(const char* end) {
    bytes_.resize(static_cast<std::size_t>(end - reinterpret_cast<const char*>(bytes_.data())));
    return *this;
  }
  std::vector<std::uint8_t> bytes_;
  std::size_t used_ = 0;
};

/// `[ts, [`: the start of a batch of so many events; finish with `.number(rank)`.
inline msgpack_writer batch_of(std::uint32_t events) {
  msgpack_writer w;
  w.array(3).real(1757500000.25).array(events);
  return w;
}

/// A BlockStored event in array form as vLLM has sent it.
inline void write_stored(msgpack_writer& w, const std::vector<std::uint64_t>& hashes,
                         std::optional<std::uint64_t> parent, const std::vector<std::uint64_t>& tokens,
                         std::uint32_t block_size) {
  w.array(8).text("BlockStored").numbers(hashes);
  parent ? w.number(*parent) : w.nil();
  w.numbers(tokens).number(block_size).nil().text("GPU").nil();
}

inline void write_removed(msgpack_writer& w, const std::vector<std::uint64_t>& hashes) {
  w.array(3).text("BlockRemoved").numbers(hashes).text("GPU");
}

/// `count` token ids from `first` on.
inline std::vector<std::uint64_t> tokens_from(std::uint64_t first, std::size_t count) {
  std::vector<std::uint64_t> tokens(count);
  for (std::size_t i = 0; i < count; ++i) tokens[i] = first + i;
  return tokens;
}

}  // namespace infernex::test
