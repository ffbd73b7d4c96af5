// link: infernex_indexer_core
//
// The KV index on one core: how fast it takes changes, how fast it answers, what a membership costs. The
// workload is made up but shaped like conversations: 256 system prompts shared by all, each conversation
// grows turn by turn on one engine (sometimes another), the oldest are evicted when an engine is full.

#include <chrono>
#include <deque>
#include <iostream>
#include <random>
#include <string>
#include <vector>

#include "actors/indexer/kv_index.hpp"
#include "tests/bench/support/report.hpp"

namespace {

using infernex::indexer::block_key;
using infernex::indexer::kv_index;
using clock_type = std::chrono::steady_clock;

double seconds_since(clock_type::time_point began) {
  return std::chrono::duration<double>(clock_type::now() - began).count();
}

block_key mixed(block_key x) {
  x += 0x9E3779B97F4A7C15ULL;
  x = (x ^ (x >> 30)) * 0xBF58476D1CE4E5B9ULL;
  x = (x ^ (x >> 27)) * 0x94D049BB133111EBULL;
  return x ^ (x >> 31);
}

struct operation {
  std::uint32_t engine;
  std::vector<block_key> added;
  std::vector<block_key> removed;
};

struct workload {
  std::vector<operation> operations;
  std::vector<std::vector<block_key>> prompts;  // chains to look up, as they were asked
  std::size_t block_operations = 0;
};

/// The same for the same seed.
workload make(std::uint32_t engines, std::size_t blocks_an_engine, std::size_t turns) {
  std::mt19937_64 random(42);
  workload out;
  std::vector<std::vector<block_key>> conversations;
  std::vector<std::uint32_t> home;
  std::vector<std::deque<std::vector<block_key>>> cached(engines);
  std::vector<std::size_t> size(engines);
  for (std::size_t t = 0; t < turns; ++t) {
    std::size_t c = conversations.size();
    if (c != 0 && random() % 4 != 0) c = c < 4096 ? random() % c : c - 1 - random() % 4096;
    if (c == conversations.size()) {
      auto& chain = conversations.emplace_back();
      block_key parent = random() % 256;
      for (std::size_t b = 0; b < 8; ++b) chain.push_back(parent = mixed(parent));
      home.push_back(static_cast<std::uint32_t>(random() % engines));
    }
    auto& chain = conversations[c];
    if (random() % 16 == 0) home[c] = static_cast<std::uint32_t>(random() % engines);
    const auto known = chain.size();
    const auto grown = 2 + random() % 24;
    for (std::size_t b = 0; b < grown; ++b) chain.push_back(mixed(chain.back() ^ random()));
    operation now{home[c], {}, {}};
    now.added.assign(chain.begin() + static_cast<std::ptrdiff_t>(t % 3 == 0 ? 0 : known), chain.end());
    size[now.engine] += now.added.size();
    cached[now.engine].push_back(now.added);
    while (size[now.engine] > blocks_an_engine) {
      auto& oldest = cached[now.engine].front();
      size[now.engine] -= oldest.size();
      now.removed.insert(now.removed.end(), oldest.begin(), oldest.end());
      cached[now.engine].pop_front();
    }
    out.block_operations += now.added.size() + now.removed.size();
    out.operations.push_back(std::move(now));
    if (t % 8 == 0) out.prompts.push_back(chain);
  }
  return out;
}

void measure(std::uint32_t engines, std::size_t blocks_an_engine, infernex::bench::report& into) {
  const auto work = make(engines, blocks_an_engine, 400'000);
  kv_index index({.max_instances = engines, .max_bytes = 8ULL << 30});
  std::vector<std::string> names;
  for (std::uint32_t e = 0; e < engines; ++e) index.add_instance(names.emplace_back("engine-" + std::to_string(e)));

  const auto began = clock_type::now();
  for (const auto& o : work.operations) {
    index.remove(names[o.engine], o.removed);
    index.add(names[o.engine], o.added);
  }
  const auto took = seconds_since(began);
  std::uint64_t memberships = 0;
  for (const auto& name : names) memberships += index.keys_of(name);

  kv_index::reader reader(index);
  std::vector<double> microseconds;
  std::uint64_t blocks = 0;
  for (int round = 0; round < 2; ++round) {  // the first warms up
    microseconds.clear();
    blocks = 0;
    // The newest half: what is asked for is mostly what has just been used.
    for (auto i = work.prompts.size() / 2; i < work.prompts.size(); ++i) {
      const auto start = clock_type::now();
      const auto found = reader.lookup(work.prompts[i]);
      microseconds.push_back(seconds_since(start) * 1e6);
      for (const auto& m : found) blocks += m.blocks;
    }
  }
  const auto p50 = infernex::bench::percentile(microseconds, 0.5);
  const auto p99 = infernex::bench::percentile(microseconds, 0.99);
  into.row(engines, memberships, index.distinct_keys(), static_cast<double>(work.block_operations) / took / 1e6, p50,
           p99, static_cast<double>(blocks) / static_cast<double>(microseconds.size()),
           static_cast<double>(index.bytes()) / static_cast<double>(memberships));
}

}  // namespace

int main(int argc, char** argv) {
  infernex::bench::report report("index", {"engines", "memberships", "distinct_keys", "block_ops_million_s",
                                           "lookup_p50_us", "lookup_p99_us", "blocks_matched", "bytes_a_membership"});
  measure(4, 40'000, report);
  measure(64, 20'000, report);
  measure(1'024, 4'000, report);
  return report.publish(infernex::bench::report_folder(argc, argv)) ? 0 : 1;
}
