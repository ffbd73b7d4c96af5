// link: infernex_router_core
//
// One decision, hashing and index lookup apart: filters, loads, overlaps, ranking, the reason in words.

#include <chrono>
#include <random>
#include <string>
#include <vector>

#include "actors/router/policy.hpp"
#include "tests/bench/support/report.hpp"

namespace {

using namespace infernex::router;

void measure(std::uint32_t engines, std::string_view strategy, infernex::bench::report& into) {
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
    loads.report(e.slot, random() % 32, random() % 8, static_cast<double>(random() % 100) / 100, now);
    model.endpoints.push_back(std::move(e));
  }
  policy how;
  how.strategy = strategy;
  const auto by = make_scheduler(spec_of(how));
  constexpr std::size_t rounds = 20'000;
  std::vector<double> microseconds;
  microseconds.reserve(rounds);
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
    placement request;
    request.request_id = "r";
    request.prompt_tokens = 1'601;
    request.block_size = 16;
    request.blocks = 100;
    const auto start = std::chrono::steady_clock::now();
    const auto& decided = by->decide(request, &model, loads, {true, {}, found, predicted}, now);
    microseconds.push_back(std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count() * 1e6);
    held += decided.serving.ranked.front().expected_blocks();
  }
  const auto p50 = infernex::bench::percentile(microseconds, 0.5);
  const auto p99 = infernex::bench::percentile(microseconds, 0.99);
  into.row(engines, std::string(strategy), p50, p99, static_cast<double>(held) / rounds);
}

}  // namespace

int main(int argc, char** argv) {
  infernex::bench::report report("decide", {"engines", "strategy", "p50_us", "p99_us", "cached_blocks_mean"});
  for (const auto engines : {16U, 128U, 1'024U, 4'096U})
    for (const auto strategy : strategies()) measure(engines, strategy, report);
  return report.publish(infernex::bench::report_folder(argc, argv)) ? 0 : 1;
}
