// link: infernex_indexer_core infernex_router_core
// Whatever a client or an engine sends to the indexer's HTTP side is read or refused, never more.
#include <cstdlib>

#include "actors/indexer/conductor.hpp"
#include "actors/indexer/dump.hpp"
#include "actors/indexer/kv_text.hpp"
#include "actors/indexer/prompt_call.hpp"
#include "actors/router/kvmanager.hpp"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  using namespace infernex;
  const std::string_view text(reinterpret_cast<const char*>(data), size);
  indexer::match_question question;
  if (!indexer::read_match_question(text, question) &&
      indexer::index_name(question.model, question.tenant) != question.index)
    std::abort();
  indexer::registration wanted;
  if (!indexer::read_registration(text, wanted) && (wanted.engine.model.empty() || wanted.engine.kv_events.empty()))
    std::abort();
  indexer::unregistration unwanted;
  indexer::conductor_query query;
  if (!indexer::read_unregistration(text, unwanted) && unwanted.id.empty()) std::abort();
  for (const auto by : {indexer::query_by::tokens, indexer::query_by::hashes})
    if (!indexer::read_query(text, by, query) && query.question.index.empty()) std::abort();
  indexer::dump_question dump;
  if (!indexer::read_dump_question(text, dump) && (dump.index.empty() || dump.limit == 0)) std::abort();
  const auto tokens = indexer::read_prompt_answer(200, text);
  if (tokens.verdict != engine::token_verdict::tokens && !tokens.ids.empty()) std::abort();
  const auto reply = router::read_kvmanager_answer(200, text, "m", 1);
  if (reply && (*reply)->matches()->size() != 1) std::abort();
  static_cast<void>(indexer::top_text(text));
  static_cast<void>(indexer::explain_text(text));
  return 0;
}
