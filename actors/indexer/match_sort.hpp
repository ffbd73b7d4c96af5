#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "actors/indexer/index_page.hpp"
#include "actors/indexer/kv_index.hpp"
#include "actors/indexer/match_question.hpp"

namespace infernex::indexer {

/// One engine in the answer to a chain.
struct match_row {
  std::string_view instance;
  /// Leading blocks on any tier; of those on the device alone; on device or host.
  std::uint32_t blocks = 0;
  std::uint32_t device_blocks = 0;
  std::uint32_t host_blocks = 0;
  /// Null where the index has no source of that name, or nobody has announced it.
  const source_status* source = nullptr;
  const engine_entry* engine = nullptr;

  bool exact() const { return source && is_exact(*source, engine); }
};

/// Best first: more blocks, more of them on the device, then on the host; then those whose blocks are known exactly;
/// then by name. Engines with no blocks are there too: "none" is an answer where the index is exact. At most `top`.
std::vector<match_row> sort_matches(std::span<const match> found, const engine_list::model* engines,
                                    std::span<const source_status> sources, std::optional<std::uint32_t> top);

/// The best `most` of those that hold something, in that order; engines that the page does not know yet are left out.
/// Its cost does not grow with the engines that hold nothing. Names are those of `sources`.
std::vector<match_row> best_matches(std::span<const match> found, const engine_list::model* engines,
                                    std::span<const source_status> sources, std::size_t most);

/// Rows that each of several chains may have, so that the whole answer is bounded: 8,192 for all, at least one.
std::size_t rows_of_each(std::size_t chains, std::optional<std::uint32_t> top);

/// What was asked, as the answer repeats it.
struct match_subject {
  const match_question& question;
  /// Unset where the caller gave keys.
  std::optional<std::size_t> prompt_tokens;
  /// How the tokens were come by: `given`, `render`, `tokenize`, `keys`.
  std::string_view tokens_by;
  std::span<const block_key> chain;
};

/// `{"model":…,"tenant":…,"block_size":…,"prompt_tokens":…|null,"blocks":…,"tokens_by":…,"instances":[…]}`; with
/// `explain`, also the keys of the chain and, for each instance, why no more is matched.
std::string render_match(const match_subject& about, std::span<const match_row> rows, time_point now);

/// The answer to several chains: `{…,"matches":[{"instances":[…]},…],"coverage":[…]}`. A row has only what the chain
/// changes; what is true of an instance for all chains is said once, in the coverage.
std::string render_matches(const match_question& question, std::span<const std::vector<match_row>> matches,
                           const engine_list::model* engines, std::span<const source_status> sources, time_point now);

/// Why an engine holds no more of the chain than it does, one line for people.
std::string why_no_more(const match_row& row, const match_subject& about);

}  // namespace infernex::indexer
