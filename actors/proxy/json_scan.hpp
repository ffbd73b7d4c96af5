#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>

/// Cutting and splicing JSON as text, so that what is passed on stays as it was written: numbers are never read and
/// written anew. None of this checks all of the JSON; malformed text gives nothing, never a read out of bounds.
namespace infernex::proxy {

struct json_member {
  /// As written between its quotes.
  std::string_view raw_name;
  std::string_view value;

  /// Compares unescaped: `max\u005ftokens` is `max_tokens` to an engine.
  bool is(std::string_view name) const;
};

/// Walks the members of an object, in place and without recursion.
class member_cursor {
 public:
  /// `object`: its JSON, which may be surrounded by white space.
  explicit member_cursor(std::string_view object);
  bool next(json_member& into);
  /// Whether the walk has ended where the object ends.
  bool complete() const { return complete_; }

 private:
  std::string_view json_;
  std::size_t at_ = 0;
  bool first_ = true;
  bool complete_ = false;
};

/// Walks the elements of an array.
class element_cursor {
 public:
  explicit element_cursor(std::string_view array);
  bool next(std::string_view& into);
  bool complete() const { return complete_; }

 private:
  std::string_view json_;
  std::size_t at_ = 0;
  bool first_ = true;
  bool complete_ = false;
};

/// The value of a member; of several of that name the last, as Python's json takes it. Empty: no such member.
std::string_view find_value(std::string_view object, std::string_view name);
/// The first element; empty: there is none.
std::string_view first_element(std::string_view array);

inline bool is_object(std::string_view json) { return !json.empty() && json.front() == '{'; }
inline bool is_array(std::string_view json) { return !json.empty() && json.front() == '['; }
inline bool is_string(std::string_view json) { return !json.empty() && json.front() == '"'; }

/// What a JSON string says; nothing: it is none. A lone surrogate becomes U+FFFD.
std::optional<std::string> text_of(std::string_view json);
/// A non-negative integer as written (no fraction, no exponent).
std::optional<std::uint64_t> count_of(std::string_view json);
/// `text` as a JSON string, quotes included.
std::string quoted(std::string_view text);

/// Sets a member to this JSON; no value: drops it.
struct json_edit {
  std::string_view name;
  std::optional<std::string> value;
};
/// The object with its members changed: the first of a name is replaced where it stands, later ones of that name
/// are dropped, new ones go to the end. Nothing: it is no object.
std::optional<std::string> edited(std::string_view object, std::span<const json_edit> edits);

/// The array with its first element replaced. Nothing: it is none, or empty.
std::optional<std::string> with_first(std::string_view array, std::string_view element);
/// The array with an element more. Nothing: it is none.
std::optional<std::string> with_appended(std::string_view array, std::string_view element);
/// The array with its last element replaced. Nothing: it is none, or empty.
std::optional<std::string> with_last(std::string_view array, std::string_view element);

}  // namespace infernex::proxy
