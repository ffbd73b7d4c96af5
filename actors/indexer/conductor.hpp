#pragma once

#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "actors/discovery/engine_descriptor.hpp"
#include "actors/indexer/index_name.hpp"
#include "actors/indexer/match_sort.hpp"

namespace infernex::indexer {

// The HTTP interface of Mooncake's Conductor indexer, by its own field names (docs/indexer-api.md).

/// `POST /register`.
struct registration {
  /// As the caller named them.
  std::string id;
  tenant_model names;
  std::optional<std::uint32_t> rank;
  /// What is to be followed; its instance is `<id>-dp<rank>` where a rank was named, its model the index's name.
  discovery::engine_descriptor engine;
};
std::optional<refusal> read_registration(std::string_view body, registration& into);
std::string render_registered(const registration& of);

/// `POST /unregister`: what is left out stands for all.
struct unregistration {
  std::string id;
  std::optional<std::string> index;
  std::optional<std::uint32_t> rank;

  bool names(const registration& one) const;
};
std::optional<refusal> read_unregistration(std::string_view body, unregistration& into);
/// `{"status":…,"removed_instances":["id|tenant|rank",…]}`.
std::string render_unregistered(std::span<const registration> removed);

/// What a query gives: a prompt's tokens (`POST /query`), or its block keys (`POST /query_by_hash`, `seq_hashes`).
enum class query_by : std::uint8_t { tokens, hashes };

/// As a match question, with the instance that alone is asked for, if one is.
struct conductor_query {
  match_question question;
  std::string instance;
};
std::optional<refusal> read_query(std::string_view body, query_by by, conductor_query& into);

/// An instance with data-parallel ranks is one instance of each rank's name, `<id>-dp<rank>`.
struct ranked_name {
  std::string_view id;
  std::uint32_t rank = 0;
};
ranked_name split_rank(std::string_view instance);

/// `{"<tenant>":{"<id>":{"longest_matched":…,"GPU":…,"DP":{"<rank>":…},"CPU":…,"DISK":…}}}`, all in tokens: the longest
/// leading part on any tier; on the device; by rank; on the device or host; on any tier. CPU and DISK are 0 where no
/// block of the part has to come from there. Of the best rank each.
/// Precondition: the question's block size is settled.
std::string render_query(const conductor_query& query, std::span<const match_row> rows);

}  // namespace infernex::indexer
