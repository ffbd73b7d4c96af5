#pragma once

// What a fleet of engines does with a trace of requests, worked out beforehand so that only the index is timed:
// for each request its chain of block keys, and the blocks the engine then stores and evicts. The method is that of
// Dynamo's mooncake_bench: the trace is repeated with shifted ids, engine blocks are 128 tokens, an engine holds
// 16,384 of them, and every hash of every request, store and removal counts as one block operation.

#include <cstdint>
#include <fstream>
#include <random>
#include <span>
#include <string>
#include <vector>

#include <simdjson.h>

namespace infernex::bench {

using block_key = std::uint64_t;

inline std::uint64_t mixed(std::uint64_t x) {
  x += 0x9E3779B97F4A7C15ULL;
  x = (x ^ (x >> 30)) * 0xBF58476D1CE4E5B9ULL;
  x = (x ^ (x >> 27)) * 0x94D049BB133111EBULL;
  return x ^ (x >> 31);
}

/// A request of a Mooncake-form trace: equal ids are equal prefixes of 512 tokens.
struct trace_request {
  std::uint32_t input_tokens = 0;
  std::uint32_t output_tokens = 0;
  std::vector<std::uint32_t> ids;
};
inline constexpr std::uint32_t trace_block = 512;
inline constexpr std::uint32_t engine_block = 128;

/// Empty if the file cannot be read. Lines that are no requests are left out.
inline std::vector<trace_request> read_trace(const std::string& file) {
  std::vector<trace_request> all;
  std::ifstream in(file);
  simdjson::dom::parser parser;
  for (std::string line; std::getline(in, line);) {
    simdjson::dom::element doc;
    std::uint64_t input = 0;
    std::uint64_t output = 0;
    simdjson::dom::array ids;
    if (parser.parse(line).get(doc) || doc["input_length"].get(input) || doc["output_length"].get(output) ||
        doc["hash_ids"].get(ids))
      continue;
    auto& request = all.emplace_back();
    request.input_tokens = static_cast<std::uint32_t>(input);
    request.output_tokens = static_cast<std::uint32_t>(output);
    for (const auto id : ids)
      if (std::uint64_t number = 0; !id.get(number)) request.ids.push_back(static_cast<std::uint32_t>(number));
  }
  return all;
}

/// Stands in where no trace is at hand: conversations that grow turn by turn, of lengths like the real trace's.
inline std::vector<trace_request> made_up_trace() {
  std::mt19937_64 random(42);
  std::vector<trace_request> all;
  std::vector<std::vector<std::uint32_t>> conversations;
  std::uint32_t next_id = 1;
  for (int i = 0; i < 12'000; ++i) {
    auto c = conversations.size();
    if (c != 0 && random() % 2 != 0) c = c < 512 ? random() % c : c - 1 - random() % 512;
    if (c == conversations.size()) conversations.push_back({0});
    auto& ids = conversations[c];
    const auto grown = 1 + random() % 8 * (random() % 8);
    for (std::uint64_t g = 0; g < grown; ++g) ids.push_back(next_id++);
    all.push_back({static_cast<std::uint32_t>(ids.size()) * trace_block, 343, ids});
  }
  return all;
}

struct operation {
  std::uint32_t engine = 0;
  /// keys[chain, chain + asked) is the request's chain; the engine had the first `cached` of it and stored the rest
  /// and what it generated: keys[chain + cached, chain + asked + generated).
  std::size_t chain = 0;
  std::uint32_t asked = 0;
  std::uint32_t cached = 0;
  std::uint32_t generated = 0;
  /// Evicted before that, no block before one that follows it: evicted[removed, removed + removed_count).
  std::size_t removed = 0;
  std::uint32_t removed_count = 0;
};

struct workload {
  std::uint32_t engines = 0;
  std::vector<block_key> keys;
  std::vector<block_key> evicted;
  std::vector<operation> operations;
  std::uint64_t block_operations = 0;

  std::span<const block_key> chain(const operation& o) const { return {keys.data() + o.chain, o.asked}; }
  std::span<const block_key> stored(const operation& o) const {
    return {keys.data() + o.chain + o.cached, o.asked + o.generated - o.cached};
  }
  std::span<const block_key> removed(const operation& o) const { return {evicted.data() + o.removed, o.removed_count}; }
};

/// An engine's prefix cache with room for so many blocks: least recently used out first, the end of a chain before
/// its beginning.
class lru_cache {
 public:
  explicit lru_cache(std::uint32_t capacity) : capacity_(capacity) {}

  bool holds(block_key k) const { return find(k) != none; }
  /// Uses (and stores, where absent) a whole chain; evicted keys are appended to `gone`.
  void use(std::span<const block_key> chain, std::vector<block_key>& gone) {
    for (auto k = chain.rbegin(); k != chain.rend(); ++k) {
      auto at = find(*k);
      if (at == none)
        at = make(*k);
      else
        unlink(at);
      link_newest(at);
    }
    while (size_ > capacity_) {
      const auto at = oldest_;
      gone.push_back(nodes_[at].key);
      erase(nodes_[at].key);
      unlink(at);
      free_.push_back(at);
      --size_;
    }
  }

 private:
  static constexpr std::uint32_t none = ~0U;
  struct node {
    block_key key;
    std::uint32_t older;
    std::uint32_t newer;
  };
  std::size_t home(block_key k) const { return k & (table_.size() - 1); }
  std::uint32_t find(block_key k) const {
    if (table_.empty()) return none;
    for (auto i = home(k);; i = (i + 1) & (table_.size() - 1)) {
      if (table_[i] == none) return none;
      if (nodes_[table_[i]].key == k) return table_[i];
    }
  }
  std::uint32_t make(block_key k) {
    std::uint32_t at = 0;
    if (free_.empty()) {
      at = static_cast<std::uint32_t>(nodes_.size());
      nodes_.push_back({});
    } else {
      at = free_.back();
      free_.pop_back();
    }
    nodes_[at].key = k;
    if ((size_ + 1) * 2 > table_.size()) {
      std::vector<std::uint32_t> old(std::max<std::size_t>(64, table_.size() * 2), none);
      old.swap(table_);
      for (const auto n : old)
        if (n != none) insert(n);
    }
    insert(at);
    ++size_;
    return at;
  }
  void insert(std::uint32_t at) {
    auto i = home(nodes_[at].key);
    while (table_[i] != none) i = (i + 1) & (table_.size() - 1);
    table_[i] = at;
  }
  void erase(block_key k) {
    const auto mask = table_.size() - 1;
    auto i = home(k);
    while (nodes_[table_[i]].key != k) i = (i + 1) & mask;
    for (auto j = i;;) {
      j = (j + 1) & mask;
      if (table_[j] == none) break;
      const auto wanted = home(nodes_[table_[j]].key);
      if (((j - wanted) & mask) >= ((j - i) & mask)) {
        table_[i] = table_[j];
        i = j;
      }
    }
    table_[i] = none;
  }
  void link_newest(std::uint32_t at) {
    nodes_[at].older = newest_;
    nodes_[at].newer = none;
    if (newest_ != none) nodes_[newest_].newer = at;
    newest_ = at;
    if (oldest_ == none) oldest_ = at;
  }
  void unlink(std::uint32_t at) {
    const auto [key, older, newer] = nodes_[at];
    (older == none ? oldest_ : nodes_[older].newer) = newer;
    (newer == none ? newest_ : nodes_[newer].older) = older;
  }

  std::uint32_t capacity_;
  std::uint32_t size_ = 0;
  std::uint32_t oldest_ = none;
  std::uint32_t newest_ = none;
  std::vector<node> nodes_;
  std::vector<std::uint32_t> free_;
  std::vector<std::uint32_t> table_;
};

/// `copies` of the trace side by side, their ids shifted; engines are chosen at random, always the same for the same
/// arguments.
inline workload make_workload(const std::vector<trace_request>& trace, std::uint32_t engines, std::uint32_t copies,
                              std::uint32_t blocks_an_engine) {
  workload out;
  out.engines = engines;
  std::mt19937_64 random(7);
  std::vector<lru_cache> caches(engines, lru_cache(blocks_an_engine));
  std::uint64_t unique = 0;
  for (const auto& request : trace) {
    for (std::uint32_t copy = 0; copy < copies; ++copy) {
      operation o;
      o.engine = static_cast<std::uint32_t>(random() % engines);
      o.chain = out.keys.size();
      o.asked = std::min<std::uint32_t>(request.input_tokens / engine_block,
                                        static_cast<std::uint32_t>(request.ids.size()) * (trace_block / engine_block));
      for (std::uint32_t b = 0; b < o.asked; ++b) {
        const auto id = request.ids[b / (trace_block / engine_block)];
        out.keys.push_back(mixed((std::uint64_t{copy} << 40) ^ (std::uint64_t{id} << 4) ^
                                 b % (trace_block / engine_block) ^ 0x5555000000000000ULL));
      }
      o.generated = (request.input_tokens % engine_block + request.output_tokens) / engine_block;
      for (std::uint32_t g = 0; g < o.generated; ++g) out.keys.push_back(mixed(++unique ^ 0xAAAA000000000000ULL));
      auto& cache = caches[o.engine];
      while (o.cached < o.asked && cache.holds(out.keys[o.chain + o.cached])) ++o.cached;
      o.removed = out.evicted.size();
      cache.use({out.keys.data() + o.chain, o.asked + o.generated}, out.evicted);
      o.removed_count = static_cast<std::uint32_t>(out.evicted.size() - o.removed);
      out.block_operations += o.asked + (o.asked + o.generated - o.cached) + o.removed_count;
      out.operations.push_back(o);
    }
  }
  return out;
}

}  // namespace infernex::bench
