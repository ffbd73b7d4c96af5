#pragma once

#include <chrono>
#include <cstdint>
#include <initializer_list>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <type_traits>
#include <utility>
#include <vector>

#include <boost/json/fwd.hpp>

#include "messages/nearest.hpp"
#include "messages/result.hpp"

namespace infernex::config {

/// One mistake: `node.yaml:2:9: gateway.port: a port between 1 and 65535, not "web"`.
struct problem {
  std::string file;
  int line = 0;    // from 1; 0: the file as a whole
  int column = 0;  // from 1
  std::string path;
  std::string message;
};
std::string render(const problem& p);

class document;
class parsed_file;

/// A mapping of the file, read key by key into plain settings. Absent keys leave the target as it is
/// (targets carry the defaults); every problem is collected, none stops the reading. When the section is
/// destroyed, keys nobody asked for are reported, each with the nearest known key. Durations are written
/// `250ms`, `2s`, `5m`, `1h`, or a plain number of seconds; sizes `64KiB`, `20MiB`, `1GB`, or a plain number of
/// bytes. Ask for each mapping below once: the object that reads it is the one that knows its keys.
class section {
 public:
  section(section&&) noexcept;
  section& operator=(section&&) = delete;
  ~section();

  bool has(std::string_view key);
  section& read(std::string_view key, std::string& out);
  section& read(std::string_view key, bool& out);
  section& read(std::string_view key, double& out, double min, double max);
  section& read(std::string_view key, std::uint64_t& out, std::uint64_t min, std::uint64_t max);
  section& read(std::string_view key, std::uint32_t& out, std::uint32_t min, std::uint32_t max);
  section& read(std::string_view key, std::uint16_t& out, std::uint16_t min, std::uint16_t max);
  section& read(std::string_view key, std::chrono::milliseconds& out, std::chrono::milliseconds min,
                std::chrono::milliseconds max);
  section& read_bytes(std::string_view key, std::uint64_t& out, std::uint64_t min, std::uint64_t max);
  section& read(std::string_view key, std::vector<std::string>& out);
  template <class T>
  section& read(std::string_view key, std::optional<T>& out, std::type_identity_t<T> min, std::type_identity_t<T> max) {
    if (!has(key)) return *this;
    const auto before = mistakes();
    T value = min;
    read(key, value, min, max);
    if (mistakes() == before) out = value;
    return *this;
  }
  /// A mapping whose keys only its user knows. Plain words of YAML's core schema become true, false, null and numbers;
  /// what is in quotes stays a text. Mistakes found in it later: complain_below.
  section& read(std::string_view key, boost::json::object& out);
  /// One of named values, e.g. {{"bus", mode::bus}, {"embedded", mode::embedded}}.
  template <class Enum>
  section& read_choice(std::string_view key, Enum& out,
                       std::initializer_list<std::pair<std::string_view, Enum>> choices) {
    std::vector<std::string_view> names;
    for (const auto& choice : choices) names.push_back(choice.first);
    if (auto index = choose(key, names)) out = (choices.begin() + *index)->second;
    return *this;
  }
  /// One of some words, as it stands.
  section& read_choice(std::string_view key, std::string& out, const std::vector<std::string_view>& words) {
    if (auto index = choose(key, words)) out = words[*index];
    return *this;
  }
  /// A mapping below; an absent one reads as empty.
  section below(std::string_view key);
  /// A sequence of mappings below.
  std::vector<section> list(std::string_view key);
  /// Reports a mistake of meaning at a key of this section (duplicate name, contradiction).
  void complain(std::string_view key, std::string message);
  /// The same at a path such as `plugins[2].parameters.alpha`: where its value stands, or, for a mapping or list, its
  /// key; where there is no such path, the nearest that there is.
  void complain_below(std::string_view path, std::string message);
  /// Takes over the mistakes of a file that this one names.
  void adopt(const std::vector<problem>& of_another_file);
  /// `file` as seen from the folder of this one.
  std::string beside(const std::string& file) const;
  /// Refuses the absence of a key.
  section& require(std::string_view key);

 private:
  friend class document;
  struct impl;
  explicit section(std::unique_ptr<impl> state);
  std::size_t mistakes() const;
  std::optional<std::size_t> choose(std::string_view key, const std::vector<std::string_view>& names);
  std::unique_ptr<impl> impl_;
};

/// A YAML file of one document: at most 1 MiB, nested at most 32 deep, without aliases. Syntax errors and
/// duplicate keys are problems too; reading then sees what could be read (and missing keys are not reported).
class document {
 public:
  /// Errors: not_found, too_large (over 1 MiB), system_error (not readable).
  static result<document> load(const std::string& file);
  static document parse(std::string_view text, std::string file_name);
  document(document&&) noexcept;
  ~document();

  section root();
  /// All problems, by line; complete once every section is destroyed. At most 100, then a line with the number
  /// of those left out.
  std::vector<problem> problems() const;

 private:
  explicit document(std::shared_ptr<parsed_file> file);
  std::shared_ptr<parsed_file> file_;
};

}  // namespace infernex::config
