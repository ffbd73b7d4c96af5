#pragma once

#include <chrono>
#include <functional>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "actors/indexer/conductor.hpp"
#include "actors/indexer/index_page.hpp"

namespace infernex::indexer {

/// What was registered over HTTP with this replica; bounded by whoever follows the engines. One thread.
class registrations {
 public:
  enum class verdict : std::uint8_t { add, said_already, refused };
  struct decision {
    verdict what = verdict::add;
    std::optional<refusal> why;
  };
  /// Whether an engine is to be followed. Its block size becomes that of its model, if one is known: keys of one model
  /// are made at one size, and agents regroup an engine's blocks. Refused, 409: `block_size` names another size; the
  /// instance is registered with other endpoints, or somebody else follows it (a source that is not stale).
  decision decide(registration& wanted, const index_page& page, time_point now);
  void added(registration what);
  /// Nobody follows it any more.
  void lost(std::string_view instance);
  /// What is unregistered, and may be registered again although the page does not show its end yet.
  std::vector<registration> remove(const unregistration& unwanted, time_point now);
  bool has(std::string_view instance) const;

 private:
  std::optional<std::uint32_t> block_size_of(const std::string& model, const index_page& page) const;
  bool followed_elsewhere(const registration& wanted, const index_page& page, time_point now);

  std::vector<registration> known_;
  /// When we ended them; until the page shows it, or would call them stale.
  std::map<std::string, time_point, std::less<>> ended_;
};

}  // namespace infernex::indexer
