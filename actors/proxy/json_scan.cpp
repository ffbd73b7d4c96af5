#include "actors/proxy/json_scan.hpp"

#include <charconv>

namespace infernex::proxy {
namespace {

constexpr auto npos = std::string_view::npos;

std::size_t skip_space(std::string_view in, std::size_t at) {
  while (at < in.size() && (in[at] == ' ' || in[at] == '\t' || in[at] == '\n' || in[at] == '\r')) ++at;
  return at;
}

/// Behind the closing quote of the string that starts at `at`, or npos.
std::size_t string_end(std::string_view in, std::size_t at) {
  // Prompts are long strings: from quote to quote, not byte by byte.
  const auto first = at + 1;
  for (auto quote = in.find('"', first); quote != npos; quote = in.find('"', quote + 1)) {
    auto before = quote;
    while (before > first && in[before - 1] == '\\') --before;
    // Behind an odd number of backslashes it is escaped.
    if ((quote - before) % 2 == 0) return quote + 1;
  }
  return npos;
}

std::size_t nested_end(std::string_view in, std::size_t at) {
  std::size_t depth = 0;
  while (at < in.size()) {
    const char c = in[at];
    if (c == '"') {
      at = string_end(in, at);
      if (at == npos) return npos;
      continue;
    }
    ++at;
    if (c == '{' || c == '[') ++depth;
    if ((c == '}' || c == ']') && --depth == 0) return at;
  }
  return npos;
}

/// Behind the value that starts at `at`, or npos.
std::size_t value_end(std::string_view in, std::size_t at) {
  if (at >= in.size()) return npos;
  if (in[at] == '"') return string_end(in, at);
  if (in[at] == '{' || in[at] == '[') return nested_end(in, at);
  const auto end = in.find_first_of(",]} \t\r\n\"{[:", at);
  const auto last = end == npos ? in.size() : end;
  return last == at ? npos : last;
}

/// To the next item behind `at`, or past the closing bracket. False: neither stands there.
enum class step : std::uint8_t { item, end, broken };
step advance(std::string_view in, std::size_t& at, bool& first, char close) {
  at = skip_space(in, at);
  if (at >= in.size()) return step::broken;
  if (in[at] == close) {
    at = skip_space(in, at + 1);
    return at == in.size() ? step::end : step::broken;
  }
  if (!first) {
    if (in[at] != ',') return step::broken;
    at = skip_space(in, at + 1);
  }
  first = false;
  return step::item;
}

void append_utf8(std::string& to, std::uint32_t code) {
  if (code < 0x80) {
    to += static_cast<char>(code);
  } else if (code < 0x800) {
    to += static_cast<char>(0xC0 | (code >> 6));
    to += static_cast<char>(0x80 | (code & 0x3F));
  } else if (code < 0x10000) {
    to += static_cast<char>(0xE0 | (code >> 12));
    to += static_cast<char>(0x80 | ((code >> 6) & 0x3F));
    to += static_cast<char>(0x80 | (code & 0x3F));
  } else {
    to += static_cast<char>(0xF0 | (code >> 18));
    to += static_cast<char>(0x80 | ((code >> 12) & 0x3F));
    to += static_cast<char>(0x80 | ((code >> 6) & 0x3F));
    to += static_cast<char>(0x80 | (code & 0x3F));
  }
}

std::optional<std::uint32_t> hex4(std::string_view in, std::size_t at) {
  if (at + 4 > in.size()) return std::nullopt;
  std::uint32_t code = 0;
  const auto [end, problem] = std::from_chars(in.data() + at, in.data() + at + 4, code, 16);
  if (problem != std::errc{} || end != in.data() + at + 4) return std::nullopt;
  return code;
}

/// The text between a string's quotes, unescaped.
std::optional<std::string> unescape(std::string_view in) {
  std::string out;
  out.reserve(in.size());
  for (std::size_t at = 0; at < in.size(); ++at) {
    if (in[at] != '\\') {
      out += in[at];
      continue;
    }
    if (++at == in.size()) return std::nullopt;
    constexpr std::string_view names = "\"\\/bfnrt";
    constexpr std::string_view means = "\"\\/\b\f\n\r\t";
    if (const auto known = names.find(in[at]); known != npos) {
      out += means[known];
      continue;
    }
    const auto code = in[at] == 'u' ? hex4(in, at + 1) : std::nullopt;
    if (!code) return std::nullopt;
    at += 4;
    if (*code < 0xD800 || *code > 0xDFFF) {
      append_utf8(out, *code);
      continue;
    }
    const auto low = *code < 0xDC00 && in.substr(at + 1, 2) == "\\u" ? hex4(in, at + 3) : std::nullopt;
    if (low && *low >= 0xDC00 && *low <= 0xDFFF) {
      append_utf8(out, 0x10000 + ((*code - 0xD800) << 10) + (*low - 0xDC00));
      at += 6;
    } else {
      append_utf8(out, 0xFFFD);
    }
  }
  return out;
}

}  // namespace

bool json_member::is(std::string_view name) const {
  // With escapes it is longer than what it means.
  if (raw_name.size() <= name.size() || raw_name.find('\\') == npos) return raw_name == name;
  return unescape(raw_name) == name;
}

member_cursor::member_cursor(std::string_view object) : json_(object) {
  at_ = skip_space(json_, 0);
  if (at_ < json_.size() && json_[at_] == '{') {
    ++at_;
  } else {
    at_ = json_.size();
  }
}

bool member_cursor::next(json_member& into) {
  const auto found = advance(json_, at_, first_, '}');
  if (found == step::end) complete_ = true;
  const auto stop = [this] {
    at_ = json_.size();
    return false;
  };
  if (found != step::item || at_ >= json_.size() || json_[at_] != '"') return stop();
  const auto name_end = string_end(json_, at_);
  if (name_end == npos) return stop();
  into.raw_name = json_.substr(at_ + 1, name_end - at_ - 2);
  at_ = skip_space(json_, name_end);
  if (at_ >= json_.size() || json_[at_] != ':') return stop();
  at_ = skip_space(json_, at_ + 1);
  const auto end = value_end(json_, at_);
  if (end == npos) return stop();
  into.value = json_.substr(at_, end - at_);
  at_ = end;
  return true;
}

element_cursor::element_cursor(std::string_view array) : json_(array) {
  at_ = skip_space(json_, 0);
  if (at_ < json_.size() && json_[at_] == '[') {
    ++at_;
  } else {
    at_ = json_.size();
  }
}

bool element_cursor::next(std::string_view& into) {
  const auto found = advance(json_, at_, first_, ']');
  if (found == step::end) complete_ = true;
  const auto end = found == step::item ? value_end(json_, at_) : npos;
  if (end == npos) {
    at_ = json_.size();
    return false;
  }
  into = json_.substr(at_, end - at_);
  at_ = end;
  return true;
}

std::string_view find_value(std::string_view object, std::string_view name) {
  std::string_view found;
  member_cursor walk(object);
  for (json_member m; walk.next(m);) {
    if (m.is(name)) found = m.value;
  }
  return found;
}

std::string_view first_element(std::string_view array) {
  std::string_view first;
  element_cursor walk(array);
  walk.next(first);
  return first;
}

std::optional<std::string> text_of(std::string_view json) {
  if (json.size() < 2 || json.front() != '"' || json.back() != '"') return std::nullopt;
  return unescape(json.substr(1, json.size() - 2));
}

std::optional<std::uint64_t> count_of(std::string_view json) {
  std::uint64_t value = 0;
  const auto [end, problem] = std::from_chars(json.data(), json.data() + json.size(), value);
  if (json.empty() || problem != std::errc{} || end != json.data() + json.size()) return std::nullopt;
  return value;
}

std::string quoted(std::string_view text) {
  static constexpr char hex[] = "0123456789abcdef";
  std::string out = "\"";
  for (const char c : text) {
    const auto byte = static_cast<unsigned char>(c);
    if (c == '"' || c == '\\') {
      (out += '\\') += c;
    } else if (byte < 0x20) {
      ((out += "\\u00") += hex[byte >> 4]) += hex[byte & 15];
    } else {
      out += c;
    }
  }
  return out += '"';
}

}  // namespace infernex::proxy
