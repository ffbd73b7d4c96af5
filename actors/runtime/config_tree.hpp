#pragma once

// Private to the config reader: what stands in the file, where, and what is wrong with it.

#include <chrono>
#include <cstdint>
#include <deque>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "actors/runtime/config.hpp"

namespace infernex::config {

/// Counted from 1.
struct position {
  int line = 1;
  int column = 1;
};

struct node;

struct entry {
  std::string key;
  position at;
  node* value;
};

struct node {
  /// `unusable`: already reported (an alias), so that reading it adds no second problem.
  enum class kind : std::uint8_t { null, scalar, list, mapping, unusable };
  kind what = kind::null;
  position at;
  std::string text;     // of a scalar
  bool quoted = false;  // "8000" is a text, 8000 a number
  std::vector<node*> items;
  std::vector<entry> entries;
};

/// A file as parsed, with the problems found so far, by parsing and by reading.
class parsed_file {
 public:
  parsed_file(std::string_view text, std::string file);
  parsed_file(const parsed_file&) = delete;
  parsed_file& operator=(const parsed_file&) = delete;

  /// Null for an empty file.
  const node* root() const { return root_; }
  /// Parsing stopped early, so that a missing key may only be unread.
  bool broken() const { return broken_; }
  void report(position at, std::string path, std::string message);
  void adopt(const problem& of_another_file);
  const std::string& name() const { return file_; }
  std::size_t reported() const { return reported_; }
  std::vector<problem> problems() const;

 private:
  friend class tree_builder;
  std::string file_;
  std::deque<node> nodes_;
  node* root_ = nullptr;
  bool broken_ = false;
  std::size_t reported_ = 0;
  std::vector<problem> problems_;
};

/// Where `path` (`list[2].key`, below `from`) stands, see section::complain_below. `at`: where `from` itself stands.
position position_of(const node* from, position at, std::string_view path);

/// A free-form value. Recursion is bounded by the nesting a file may have.
boost::json::value json_of(const node& from);

/// A text of the file for a message: one line, of bounded length; and the same in quotes.
std::string printable(std::string_view text);
std::string quote(std::string_view text);

// The words of scalars; nullopt if the text is none. Numbers have no sign and no exponent (but for real_number).
std::optional<std::uint64_t> whole_number(std::string_view text);
std::optional<double> real_number(std::string_view text);
/// Whole milliseconds only: `0.5ms` is none.
std::optional<std::chrono::milliseconds> duration(std::string_view text);
std::optional<std::uint64_t> byte_size(std::string_view text);

std::string render_number(double value);
std::string render_duration(std::chrono::milliseconds value);
std::string render_bytes(std::uint64_t value);

}  // namespace infernex::config
