#include <boost/asio/ip/address.hpp>

#include "actors/indexer/conductor.hpp"
#include "actors/indexer/http_api.hpp"
#include "actors/runtime/log.hpp"

namespace infernex::indexer {
namespace {

refusal refusal_of(const error& problem) {
  const unsigned status = problem.code == errc::overloaded ? 429 : problem.code == errc::cancelled ? 503 : 400;
  return {status, problem.detail.empty() ? std::string(describe(problem.code)) : problem.detail, {}, {}};
}

/// Whoever can register an engine makes this process connect to any address, and routers trust what it is told there.
bool is_open_to_others(const std::string& address) {
  boost::system::error_code problem;
  const auto parsed = http::asio::ip::make_address(address, problem);
  return problem || !parsed.is_loopback();
}

std::optional<refusal> enter(api_call& call, registration& wanted) {
  auto& at = call.at;
  if (!at.registered.add)
    return refusal{501, "this process follows no engines of its own: register with an `infernex indexer`", {}, {}};
  if (!at.how.allow_register && is_open_to_others(at.how.admin_address))
    return refusal{403,
                   "engines are registered over the network only where indexer.allow_register is true",
                   "registration_not_allowed",
                   {}};
  // One whose agent could not be kept running is not there any more.
  if (at.registered.follows && !at.registered.follows(wanted.engine.instance)) at.known.lost(wanted.engine.instance);
  auto decided = at.known.decide(wanted, *at.page(), std::chrono::steady_clock::now());
  if (decided.what != registrations::verdict::add) return std::move(decided.why);
  if (const auto problem = at.registered.add(wanted.engine); problem.code != errc::none) return refusal_of(problem);
  log::info(
      "engine registered",
      {{"instance", wanted.engine.instance}, {"model", wanted.engine.model}, {"endpoint", wanted.engine.kv_events}});
  at.known.added(wanted);
  return std::nullopt;
}

/// The longest leading parts of a chain of keys, by Conductor's names.
http::task<void> answer_query(api_call& call, query_by by) {
  conductor_query query;
  auto problem = read_query(call.in.body, by, query);
  const auto page = call.at.page();
  if (!problem) problem = settle_names(query.question, *page->engines);
  if (problem) {
    co_await refuse(call.out, *std::move(problem));
    co_return;
  }
  const auto& question = query.question;
  const auto chain = by == query_by::hashes ? question.chains.lists.at(0) : keys_of(question, question.token_ids, true);
  const auto found = look_up(call, question.index, chain);
  const auto rows =
      sort_matches(found, page->engines->find(question.index), page->sources_of(question.index), std::nullopt);
  const auto body = render_query(query, rows);
  co_await answer_json(call.out, body);
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
  std::vector<registration> removed;
  if (!problem) removed = call.at.known.remove(unwanted, std::chrono::steady_clock::now());
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

http::task<void> serve_query(api_call& call) { co_await answer_query(call, query_by::tokens); }

http::task<void> serve_query_by_hash(api_call& call) { co_await answer_query(call, query_by::hashes); }

}  // namespace infernex::indexer
