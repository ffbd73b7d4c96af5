#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "actors/indexer/request_body.hpp"

namespace infernex::indexer {

/// `GET /dump?model=…[&tenant=…][&instance=…][&limit=…]`.
struct dump_question {
  std::string model;
  std::string tenant;
  /// Name in the index.
  std::string index;
  /// Empty: all of the model.
  std::string instance;
  /// Keys in the whole answer.
  std::uint64_t limit = 1'000'000;
};

/// `target` as received: path and query. Parameters nobody knows are refused.
std::optional<refusal> read_dump_question(std::string_view target, dump_question& into);

/// The answer as it is streamed, piece by piece:
/// `{"model":…,"tenant":…,"instances":[{"instance":…,"keys":["16 hex digits",…]},…],"keys":n,"complete":…}`.
class dump_text {
 public:
  explicit dump_text(const dump_question& about);

  std::string head() const;
  std::string begin_instance(std::string_view instance);
  /// At most what the limit leaves.
  std::string keys(const std::vector<block_key>& some);
  std::string end_instance() const { return "]}"; }
  /// Not complete if there were keys beyond the limit.
  std::string tail() const;

  /// There was a key beyond the limit: whatever else comes is not taken.
  bool cut() const { return cut_; }

 private:
  const dump_question& about_;
  std::uint64_t left_;
  bool cut_ = false;
  bool first_instance_ = true;
  bool first_key_ = true;
};

}  // namespace infernex::indexer
