// link: infernex_router_core
//
// One decision, hashing and index lookup apart: filters, loads, overlaps, scores, ranking, the reason in words, with a
// prompt of 100 blocks. `allocations` are those of 1,000 decisions after warm-up. Writes build/bench/decide.json with
// the figures of the strategy `infernex` by number of candidates.

#include <chrono>
#include <cstdlib>
#include <fstream>
#include <new>
#include <random>
#include <string>
#include <vector>

#include "actors/router/policy.hpp"
#include "tests/bench/support/report.hpp"

namespace {
std::size_t allocations = 0;
}

void* operator new(std::size_t size) {
  ++allocations;
  if (void* memory = std::malloc(size)) return memory;
  throw std::bad_alloc();
}
void operator delete(void* memory) noexcept { std::free(memory); }
void operator delete(void* memory, std::size_t) noexcept { std::free(memory); }

namespace {

using namespace infernex::router;

struct figures {
  double p50_us;
  double p99_us;
};

figures measure(std::uint32_t engines, std::string_view strategy, infernex::bench::report& into) {
  std::mt19937 random(7);
  load_board loads(engines);
  model_endpoints model{"m", {}};
  const auto now = std::chrono::steady_clock::now();
  for (std::uint32_t i = 0; i < engines; ++i) {
    endpoint e;
    e.instance = "engine-" + std::to_string(100'000 + i);
    e.url = "http://10.0.0.1:" + std::to_string(9'000 + i);
    e.state = infernex::fb::EngineState::Ready;
    e.slot = *loads.acquire();
    e.block_size = 16;
    e.total_blocks = 32'768;
    loads.report(e.slot, random() % 32, random() % 8, static_cast<double>(random() % 100) / 100, now);
    loads.learn(e.slot, {20.0F, 0.02F, 9.0F, 0.001F, 300.0F, 15.0F, 300.0F});
    model.endpoints.push_back(std::move(e));
  }
  policy how;
  how.strategy = strategy;
  const auto by = make_scheduler(spec_of(how));
  const std::size_t warm_up = 200;
  const std::size_t counted = 1'000;
  const std::size_t rounds = warm_up + counted + 2'000'000 / (engines + 100);
  std::vector<double> microseconds;
  microseconds.reserve(rounds);
  std::vector<std::uint64_t> keys(100);
  std::size_t allocated = 0;
  std::uint64_t held = 0;
  for (std::size_t round = 0; round < rounds; ++round) {
    // A quarter of the engines hold the start of the prompt, on several tiers; some of them, and as many others, should
    // hold it because it was routed there.
    std::vector<overlap> found;
    std::vector<overlap> predicted;
    for (auto i = static_cast<std::uint32_t>(round % 4); i < engines; i += 4) {
      const auto blocks = static_cast<std::uint32_t>(random() % 100);
      found.push_back({model.endpoints[i].instance, blocks, blocks / 4, blocks / 2});
    }
    for (auto i = static_cast<std::uint32_t>(round % 5); i < engines; i += 5)
      predicted.push_back({model.endpoints[i].instance, static_cast<std::uint32_t>(random() % 100)});
    for (auto& key : keys) key = random();
    placement request;
    request.request_id = "r";
    request.prompt_tokens = 1'601;
    request.block_size = 16;
    request.blocks = 100;
    request.keys = keys;
    const auto before = allocations;
    const auto start = std::chrono::steady_clock::now();
    const auto& decided = by->decide(request, &model, loads, {true, {}, found, predicted}, now);
    microseconds.push_back(std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count() * 1e6);
    if (round >= warm_up && round < warm_up + counted) allocated += allocations - before;
    if (!decided.serving.ranked.empty()) held += decided.serving.ranked.front().expected_blocks();
  }
  microseconds.erase(microseconds.begin(), microseconds.begin() + warm_up);
  const figures out{infernex::bench::percentile(microseconds, 0.5), infernex::bench::percentile(microseconds, 0.99)};
  into.row(engines, std::string(strategy), out.p50_us, out.p99_us, allocated,
           static_cast<double>(held) / static_cast<double>(rounds));
  return out;
}

}  // namespace

int main(int argc, char** argv) {
  infernex::bench::report report("decide_all",
                                 {"engines", "strategy", "p50_us", "p99_us", "allocations", "cached_blocks_mean"});
  std::string json;
  for (const auto engines : {16U, 128U, 1'024U, 4'096U})
    for (const auto strategy : strategies()) {
      policy how;
      how.strategy = strategy;
      if (!takes_single_engines(how)) continue;
      const auto seen = measure(engines, strategy, report);
      if (strategy != "infernex") continue;
      json += (json.empty() ? "" : ", ") + ("\"" + std::to_string(engines)) +
              "\": {\"p50_us\": " + std::to_string(seen.p50_us) + ", \"p99_us\": " + std::to_string(seen.p99_us) + "}";
    }
  const auto folder = infernex::bench::report_folder(argc, argv);
  if (!report.publish(folder)) return 1;
  std::ofstream out(folder / "decide.json");
  out << "{\"strategy\": \"infernex\", \"candidates\": {" << json << "}}\n";
  return out.good() ? 0 : 1;
}
