// From the tokens in an engine's cache to the answer of an index, through every part between them and over channels
// that lose, double and reorder: once the world is left in peace, the index equals the engines, block for block.
//   INFERNEX_SEED=N runs script N alone; INFERNEX_SCRIPTS=N runs so many.

#include <algorithm>
#include <atomic>
#include <cstdlib>
#include <stdexcept>
#include <string>
#include <thread>

#include <doctest/doctest.h>

#include "messages/kv_digest.hpp"
#include "tests/unit/indexer/exact_world.hpp"

namespace infernex::test {
namespace {

using indexer::kv_index;
using indexer::match;

std::uint64_t number_from(const char* variable, std::uint64_t otherwise) {
  const auto* text = std::getenv(variable);
  return text && *text ? std::strtoull(text, nullptr, 10) : otherwise;
}

std::uint64_t digest_of_all(const std::set<membership>& all) {
  std::uint64_t digest = 0;
  for (const auto& [tier, key] : all) digest ^= digest_of(key, tier);
  return digest;
}

std::set<engine::block_key> keys_of(const std::set<membership>& all) {
  std::set<engine::block_key> keys;
  for (const auto& [tier, key] : all) keys.insert(key);
  return keys;
}

struct answer {
  std::string instance;
  std::array<std::uint32_t, 3> blocks{};  // device, host, any
  friend auto operator<=>(const answer&, const answer&) = default;
};

std::vector<answer> sorted(std::span<const match> found) {
  std::vector<answer> all;
  for (const auto& m : found) all.push_back({std::string(m.instance), {m.device_blocks, m.host_blocks, m.blocks}});
  std::ranges::sort(all);
  return all;
}

/// What a script found wrong. Scripts run on several threads, where doctest's REQUIRE cannot be used.
struct wrong : std::runtime_error {
  using std::runtime_error::runtime_error;
};

class script {
 public:
  explicit script(std::uint64_t seed) : world_(seed) {}

  /// Throws wrong.
  void run() {
    for (auto steps = 15 + world_.random().below(45); steps > 0; --steps) world_.step();
    must(world_.settle(), "all", "it never settles");
    for (auto& one : world_.members()) check_agent(one);
    for (const auto& each : world_.indexers()) {
      for (auto& one : world_.members()) check_index(*each, one.engine->shape());
      for (int i = 0; i < 16; ++i) check_query(*each);
    }
  }
  std::uint64_t snapshots() const { return world_.snapshots(); }
  std::uint64_t blocks = 0;
  std::uint64_t partial = 0;

 private:
  static void must(bool holds, const std::string& instance, const char* otherwise) {
    if (!holds) throw wrong(instance + ": " + otherwise);
  }

  /// An agent that says it has all has; one that says it lacks some has cause to, and nothing that is not there.
  void check_agent(scripted_world::member& one) {
    const auto& engine = *one.engine;
    const auto& name = engine.shape().instance;
    auto& held = held_[name];
    held = one.agent->mirror();
    blocks += held.size();
    const auto truth = engine.truth();
    const auto health = one.agent->book().kv_health();
    if (health == fb::KvHealth::Live) return must(held == truth, name, "the mirror says it is whole, and is not");
    ++partial;
    must(health == fb::KvHealth::Partial, name, "the mirror is neither whole nor partial");
    must(!engine.keeps_all(), name, "the mirror stays partial, though all history is to be had");
    must(std::ranges::includes(truth, held), name, "a partial mirror holds what the engine does not");
  }

  void check_index(const scripted_indexer& by, const engine_shape& of) {
    const auto& held = held_[of.instance];
    must(by.keys(of) == keys_of(held), of.instance, "the index lists other blocks");
    const auto index = by.indexes->find(of.model);
    for (const auto on : {fb::KvTier::Device, fb::KvTier::Host, fb::KvTier::Disk})
      must(index->keys_of(of.instance, on) ==
               static_cast<std::uint64_t>(std::ranges::count(held, on, &membership::first)),
           of.instance, "the index has another number of blocks on a tier");
    must(index->digest_of(of.instance) == digest_of_all(held), of.instance, "the index has other blocks on a tier");
  }

  void check_query(const scripted_indexer& by) {
    auto& members = world_.members();
    const auto& model = members[world_.random().below(members.size())].engine->shape().model;
    const auto chain = members[world_.random().below(members.size())].engine->random_chain();
    const auto index = by.indexes->find(model);
    kv_index::reader reader(*index);
    const auto galloped = sorted(reader.lookup(chain));
    must(galloped == sorted(reader.walk(chain)), model, "galloping and walking differ");
    std::vector<answer> expected;
    for (const auto& one : members)
      if (one.engine->shape().model == model)
        if (auto naive = naive_answer(one.engine->shape().instance, chain); naive.blocks[2] > 0)
          expected.push_back(std::move(naive));
    std::ranges::sort(expected);
    must(galloped == expected, model, "a lookup's answer is wrong");
  }

  answer naive_answer(const std::string& instance, const std::vector<engine::block_key>& chain) const {
    answer naive{instance, {}};
    const auto& held = held_.at(instance);
    for (std::size_t farthest = 0; farthest < naive.blocks.size(); ++farthest)
      for (const auto key : chain) {
        bool here = false;
        for (std::size_t t = 0; t <= farthest; ++t) here = here || held.contains({static_cast<fb::KvTier>(t), key});
        if (!here) break;
        ++naive.blocks[farthest];
      }
    return naive;
  }

  scripted_world world_;
  std::map<std::string, std::set<membership>> held_;  // by the agent, of each engine
};

struct results {
  std::uint64_t blocks = 0;
  std::uint64_t partial = 0;
  std::uint64_t snapshots = 0;
  std::vector<std::string> problems;
};

void run_script(std::uint64_t seed, results& into) {
  try {
    script one(seed);
    one.run();
    into.blocks += one.blocks;
    into.partial += one.partial;
    into.snapshots += one.snapshots();
  } catch (const wrong& found) {
    into.problems.push_back("INFERNEX_SEED=" + std::to_string(seed) + ": " + found.what());
  }
}

results run_scripts(std::uint64_t scripts) {
  std::vector<results> parts(std::max(1U, std::thread::hardware_concurrency()));
  std::atomic<std::uint64_t> next{1};
  std::vector<std::thread> threads;
  for (auto& part : parts)
    threads.emplace_back([&next, &part, scripts] {
      for (auto seed = next++; seed <= scripts && part.problems.empty(); seed = next++) run_script(seed, part);
    });
  for (auto& each : threads) each.join();
  results all;
  for (auto& part : parts) {
    all.blocks += part.blocks;
    all.partial += part.partial;
    all.snapshots += part.snapshots;
    all.problems.insert(all.problems.end(), part.problems.begin(), part.problems.end());
  }
  return all;
}

// The scripts share nothing: ThreadSanitizer has nothing to find in them.
#ifdef __SANITIZE_THREAD__
constexpr std::uint64_t usual_scripts = 200;
#else
constexpr std::uint64_t usual_scripts = 10'000;
#endif

TEST_CASE("whatever is lost, doubled, reordered or restarted, the index ends up equal to the engines") {
  results all;
  const auto only = number_from("INFERNEX_SEED", 0);
  const auto scripts = number_from("INFERNEX_SCRIPTS", usual_scripts);
  if (only)
    run_script(only, all);
  else
    all = run_scripts(scripts);
  for (const auto& problem : all.problems) FAIL_CHECK(problem);
  MESSAGE((only ? 1 : scripts), " scripts: ", all.blocks, " blocks compared, ", all.partial,
          " engines known only in part, ", all.snapshots, " snapshots");
  if (only) return;
  // The run must have been worth its name.
  CHECK(all.blocks > 10 * scripts);
  CHECK(all.partial > scripts / 100);
  CHECK(all.partial < scripts);
  CHECK(all.snapshots > scripts);
}

}  // namespace
}  // namespace infernex::test
