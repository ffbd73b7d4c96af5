#include <algorithm>

#include "actors/indexer/conductor.hpp"
#include "actors/indexer/http_api.hpp"
#include "actors/runtime/log.hpp"

namespace infernex::indexer {
namespace {

/// Refused: another agent follows that engine already (two would contradict each other on the bus).
std::optional<refusal> followed_elsewhere(const registration& wanted, const index_page& page) {
  const auto* model = page.engines->find(wanted.engine.model);
  const auto* engine = model ? model->find(wanted.engine.instance) : nullptr;
  if (!engine || engine->state == fb::EngineState::Down) return std::nullopt;
  return refusal{409, "instance_id: an engine " + wanted.engine.instance + " of this model is followed already",
                 "already_registered", "instance_id"};
}

refusal refusal_of(const error& problem) {
  const unsigned status = problem.code == errc::overloaded ? 429 : 400;
  return {status, problem.detail.empty() ? std::string(describe(problem.code)) : problem.detail, {}, {}};
}

std::optional<refusal> enter(api_call& call, registration& wanted) {
  auto& at = call.at;
  if (!at.registered.add)
    return refusal{501, "this process follows no engines of its own: register with an `infernex indexer`", {}, {}};
  auto& known = at.registrations;
  const auto same = std::ranges::find_if(
      known, [&](const registration& one) { return one.engine.instance == wanted.engine.instance; });
  const auto page = at.page();
  if (same == known.end()) {
    if (auto elsewhere = followed_elsewhere(wanted, *page)) return elsewhere;
    // Keys of one model are made at one block size, whatever a newcomer's own is.
    if (const auto* model = page->engines->find(wanted.engine.model))
      if (const auto size = model->block_size()) wanted.engine.block_size = size;
  } else {
    wanted.engine.block_size = same->engine.block_size;
    if (same->engine == wanted.engine) return std::nullopt;  // said twice
    return refusal{409, "instance_id: " + wanted.engine.instance + " is registered with other endpoints",
                   "already_registered", "instance_id"};
  }
  if (const auto problem = at.registered.add(wanted.engine); problem.code != errc::none) return refusal_of(problem);
  log::info(
      "engine registered",
      {{"instance", wanted.engine.instance}, {"model", wanted.engine.model}, {"endpoint", wanted.engine.kv_events}});
  known.push_back(wanted);
  return std::nullopt;
}

}  // namespace

http::task<void> serve_register(api_call& call) {
  registration wanted;
  auto problem = read_registration(call.in.body, wanted);
  if (!problem) problem = enter(call, wanted);
  const auto body = render_registered(wanted);
  if (problem)
    co_await refuse(call.out, *std::move(problem));
  else
    co_await answer_json(call.out, body);
}

http::task<void> serve_unregister(api_call& call) {
  unregistration unwanted;
  auto problem = read_unregistration(call.in.body, unwanted);
  auto& known = call.at.registrations;
  const auto gone = std::stable_partition(known.begin(), known.end(),
                                          [&](const registration& one) { return problem || !unwanted.names(one); });
  const std::vector<registration> removed(gone, known.end());
  known.erase(gone, known.end());
  if (!problem && removed.empty())
    problem = refusal{404, "no engine of that name was registered here", "not_registered", "instance_id"};
  for (const auto& one : removed) {
    call.at.registered.remove(one.engine.instance);
    log::info("engine unregistered", {{"instance", one.engine.instance}, {"model", one.engine.model}});
  }
  const auto body = render_unregistered(removed);
  if (problem)
    co_await refuse(call.out, *std::move(problem));
  else
    co_await answer_json(call.out, body);
}

http::task<void> serve_query(api_call& call) {
  conductor_query query;
  auto problem = read_query(call.in.body, query);
  const auto page = call.at.page();
  if (!problem) problem = settle_names(query.question, *page->engines);
  if (problem) {
    co_await refuse(call.out, *std::move(problem));
    co_return;
  }
  const auto chain = keys_of(query.question, query.question.token_ids, true);
  const auto& index = query.question.index;
  const auto found = look_up(call, index, chain);
  const auto rows = sort_matches(found, page->engines->find(index), page->sources_of(index), std::nullopt);
  const auto body = render_query(query, rows);
  co_await answer_json(call.out, body);
}

http::task<void> serve_query_by_hash(api_call& call) {
  refusal why{501,
              "engines' own block hashes stay with the agents that follow them and are not indexed: ask /query with "
              "token_ids, or /match_sort",
              "not_implemented", "seq_hashes"};
  co_await refuse(call.out, std::move(why));
}

}  // namespace infernex::indexer
