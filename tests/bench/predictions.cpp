// link: infernex_router_core
//
// What a prediction costs: looking a prompt up among what was routed lately, and recording where it went.

#include <chrono>
#include <random>
#include <string>
#include <vector>

#include "actors/router/prediction.hpp"
#include "tests/bench/support/report.hpp"

namespace {

using namespace infernex::router;
using steady = std::chrono::steady_clock;

double microseconds_since(steady::time_point start) {
  return std::chrono::duration<double>(steady::now() - start).count() * 1e6;
}

void measure(std::uint32_t engines, std::size_t blocks, infernex::bench::report& into) {
  std::mt19937_64 random(7);
  topology present;
  auto& model = present.models["m"];
  model.model = "m";
  for (std::uint32_t i = 0; i < engines; ++i) {
    auto& e = model.endpoints.emplace_back();
    e.instance = "engine-" + std::to_string(100'000 + i);
    e.state = infernex::fb::EngineState::Ready;
    e.total_blocks = 8'192;
    e.block_size = 16;
  }
  prediction_index all({});
  all.follow(present);
  prediction_index::reader lookups(all);
  // A hundred conversations that share the first half of their prompts with all others.
  std::vector<std::vector<std::uint64_t>> prompts(100, std::vector<std::uint64_t>(blocks));
  for (std::size_t b = 0; b < blocks; ++b) {
    const auto shared = random();
    for (auto& prompt : prompts) prompt[b] = b < blocks / 2 ? shared : random();
  }
  constexpr std::size_t rounds = 20'000;
  std::vector<double> lookup_us, record_us;
  std::uint64_t found = 0;
  for (std::size_t round = 0; round < rounds; ++round) {
    const auto& prompt = prompts[random() % prompts.size()];
    const auto began = steady::now();
    for (const auto& m : lookups.lookup("m", infernex::fb::KeyMode::Token, prompt)) found += m.blocks;
    lookup_us.push_back(microseconds_since(began));
    const auto& to = model.endpoints[random() % engines].instance;
    const auto now = steady::now();
    all.record("m", infernex::fb::KeyMode::Token, to, prompt, now);
    record_us.push_back(microseconds_since(now));
    all.expire(now);
  }
  const auto count = all.count();
  into.row(engines, static_cast<std::uint32_t>(blocks), infernex::bench::percentile(lookup_us, 0.5),
           infernex::bench::percentile(lookup_us, 0.99), infernex::bench::percentile(record_us, 0.5),
           infernex::bench::percentile(record_us, 0.99),
           static_cast<double>(count.bytes) / static_cast<double>(count.entries),
           static_cast<double>(found) / rounds / engines);
}

}  // namespace

int main(int argc, char** argv) {
  infernex::bench::report report("predictions", {"engines", "blocks", "lookup_p50_us", "lookup_p99_us", "record_p50_us",
                                                 "record_p99_us", "bytes_an_entry", "found_blocks_mean"});
  for (const auto engines : {16U, 256U})
    for (const auto blocks : {std::size_t{64}, std::size_t{512}}) measure(engines, blocks, report);
  return report.publish(infernex::bench::report_folder(argc, argv)) ? 0 : 1;
}
