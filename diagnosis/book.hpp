#pragma once

#include <deque>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "diagnosis/verdict.hpp"

namespace infernex::diagnosis {

/// A verdict as it stood at one moment.
using verdict_ref = std::shared_ptr<const verdict>;

/// All verdicts that stand, and the last ones that no longer do. Bounded: over the bound of standing ones a further
/// verdict is still told, and counted as not kept.
class verdict_book {
 public:
  explicit verdict_book(std::size_t most_standing = 65'536, std::size_t most_past = 4'096)
      : most_standing_(most_standing), most_past_(most_past) {}

  void put(verdict_ref what);
  /// By id; null: it does not stand.
  verdict_ref find(const std::string& id) const;
  standing at(const std::string& node, std::optional<std::uint32_t> device) const;
  /// By node and device; and, newest first, those cleared.
  std::vector<verdict_ref> all_standing() const;
  std::vector<verdict_ref> past() const;
  std::size_t size() const { return standing_.size(); }
  std::uint64_t raised() const { return raised_; }
  std::uint64_t cleared() const { return cleared_; }
  std::uint64_t not_kept() const { return not_kept_; }

 private:
  using place = std::pair<std::string, std::int64_t>;
  static place place_of(const std::string& node, std::optional<std::uint32_t> device) {
    return {node, device ? std::int64_t{*device} : -1};
  }
  std::size_t most_standing_;
  std::size_t most_past_;
  std::map<std::string, verdict_ref> standing_;
  std::map<place, std::vector<verdict_ref>> by_place_;
  std::deque<verdict_ref> past_;
  std::uint64_t raised_ = 0;
  std::uint64_t cleared_ = 0;
  std::uint64_t not_kept_ = 0;
};

}  // namespace infernex::diagnosis
