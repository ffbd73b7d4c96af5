// link: infernex_engine_core
#include "actors/engine/engine_metrics.hpp"

#include <cstdlib>
#include <string_view>

#include "actors/engine/model_list.hpp"
#include "actors/engine/token_source.hpp"

// Any bytes as an engine's answers: never a crash, and no figure outside its range.
extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  using namespace infernex::engine;
  const std::string_view text(reinterpret_cast<const char*>(data), size);
  if (const auto found = read_metrics(text, default_metric_sources())) {
    if (found->kv_usage && !(*found->kv_usage >= 0 && *found->kv_usage <= 1)) std::abort();
    if (found->block_size == 0U) std::abort();
    const auto of_rank = read_metrics(text, default_metric_sources(), 0);
    if (!of_rank || of_rank->bad_lines != found->bad_lines) std::abort();
  }
  if (const auto models = read_model_list(text, {}); models && models->model.empty()) std::abort();
  const auto answer = read_token_answer(200, text);
  if (answer.verdict != token_verdict::tokens && !answer.ids.empty()) std::abort();
  return 0;
}
