#pragma once

#include <cstdint>
#include <limits>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include <boost/json/object.hpp>

#include "actors/indexer/kv_index.hpp"

namespace infernex::indexer {

/// Why a request is not answered: an HTTP status, a sentence, and what it is about, for OpenAI's error shape.
struct refusal {
  unsigned status = 400;
  std::string message;
  std::string code;
  /// The field at fault, where one is.
  std::string param;
};

/// Reads the fields of a JSON request body. The first mistake stays and names its field; what is read after it is
/// empty. Nested at most 32 deep; the size is bounded by whoever read the body.
class request_body {
 public:
  explicit request_body(std::string_view text);

  bool has(std::string_view field) const;
  /// Empty if absent (null counts as absent).
  std::string text(std::string_view field);
  /// A mistake if absent or empty.
  std::string required_text(std::string_view field);
  std::optional<std::uint32_t> number(std::string_view field, std::uint32_t least, std::uint32_t most);
  bool flag(std::string_view field);
  /// Token ids, each 0..2^32-1.
  std::vector<std::uint32_t> tokens(std::string_view field);
  /// A list of 64-bit hashes (numbers, or text of up to 16 hex digits).
  std::vector<std::uint64_t> hashes(std::string_view field);
  /// One list of hashes, or a list of such lists (`several`).
  struct hash_lists {
    bool several = false;
    std::vector<std::vector<std::uint64_t>> lists;
  };
  hash_lists lists_of_hashes(std::string_view field, std::size_t max_lists);

  void complain(std::string_view field, std::string message);
  const std::optional<refusal>& mistake() const { return mistake_; }
  const boost::json::object& fields() const { return fields_; }

 private:
  const boost::json::value* find(std::string_view field) const;
  bool read_hashes(const boost::json::array& from, std::string_view field, std::vector<std::uint64_t>& into);

  boost::json::object fields_;
  std::optional<refusal> mistake_;
};

}  // namespace infernex::indexer
