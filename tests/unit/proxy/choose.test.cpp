// The choice among many engines, against a plain search through all pairs; and engines that nobody listens at.

#include "actors/proxy/choose.hpp"

#include <random>

#include <doctest/doctest.h>

using namespace infernex;
using namespace infernex::proxy;

namespace {

proxy::group_member member_of(fb::EngineRole role, const std::string& address, std::int64_t load) {
  proxy::group_member m;
  m.role = role;
  m.state = fb::EngineState::Ready;
  m.protocol = fb::KvProtocol::Nixl;
  m.engine.instance = m.engine.address = address;
  m.load->active = load;
  return m;
}

std::pair<std::string, std::string> chosen(const group_view& view) {
  auto found = choose(view, {}, {}, 100, true);
  if (std::get_if<no_pair>(&found)) return {};
  const auto& pair = std::get<chosen_pair>(found).pair;
  return {pair.prefill ? pair.prefill->address : "", pair.decode.address};
}

/// The loads of the least loaded pair that is not put aside, prefill first.
std::pair<std::int64_t, std::int64_t> least(const group_view& view) {
  std::pair<std::int64_t, std::int64_t> best{INT64_MAX, INT64_MAX};
  for (const auto& p : view.members) {
    for (const auto& d : view.members) {
      if (p.role != fb::EngineRole::Prefill || d.role != fb::EngineRole::Decode) continue;
      const bool shut = std::any_of(view.pairs.begin(), view.pairs.end(), [&](const pair_state& s) {
        return s.prefill == p.engine.address && s.decode == d.engine.address && s.breaker == fb::Breaker::Open;
      });
      if (!shut) best = std::min(best, {p.load->active.load(), d.load->active.load()});
    }
  }
  return best;
}

}  // namespace

TEST_CASE("the pair chosen is the best of all pairs that are not put aside") {
  std::mt19937 random(5);
  for (int round = 0; round < 200; ++round) {
    group_view view;
    const auto add = [&](fb::EngineRole role, char letter, unsigned many) {
      for (unsigned i = 0; i < many; ++i)
        view.members.push_back(member_of(role, letter + std::to_string(i), static_cast<std::int64_t>(random() % 4)));
    };
    add(fb::EngineRole::Prefill, 'p', 1 + random() % 8);
    add(fb::EngineRole::Decode, 'd', 1 + random() % 8);
    for (const auto& p : view.members) {
      for (const auto& d : view.members) {
        if (p.role != fb::EngineRole::Prefill || d.role != fb::EngineRole::Decode || random() % 2) continue;
        pair_state shut;
        shut.prefill = p.engine.address;
        shut.decode = d.engine.address;
        shut.breaker = random() % 3 ? fb::Breaker::Open : fb::Breaker::Closed;
        view.pairs.push_back(std::move(shut));
      }
    }
    const auto expected = least(view);
    const auto [prefill, decode] = chosen(view);
    if (expected.first == INT64_MAX) {
      CHECK(prefill.empty());
      continue;
    }
    const auto* p = view.find(fb::EngineRole::Prefill, prefill);
    const auto* d = view.find(fb::EngineRole::Decode, decode);
    REQUIRE(p);
    REQUIRE(d);
    CHECK(std::pair(p->load->active.load(), d->load->active.load()) == expected);
  }
}

TEST_CASE("an engine that nobody listens at is the last choice, however idle, and though it is named") {
  group_view view;
  view.members.push_back(member_of(fb::EngineRole::Prefill, "p0", 0));
  view.members.push_back(member_of(fb::EngineRole::Decode, "d0", 0));
  view.members.push_back(member_of(fb::EngineRole::Decode, "d1", 900));
  view.members[1].load->refuses = true;
  CHECK(chosen(view).second == "d1");
  auto named = choose(view, {}, {"", "d0"}, 100, true);
  CHECK(std::get<chosen_pair>(named).pair.decode.address == "d1");
  view.members[2].load->refuses = true;
  CHECK(chosen(view).second == "d0");
}

TEST_CASE("no prefill engine: the first attempt is the named decode engine's alone, if it can take the request") {
  group_view view;
  view.members.push_back(member_of(fb::EngineRole::Prefill, "p0", 0));
  view.members.push_back(member_of(fb::EngineRole::Decode, "d0", 900));
  view.members.push_back(member_of(fb::EngineRole::Decode, "d1", 0));
  const auto named = read_names("none", "d0");
  CHECK(named.alone);
  CHECK(stranger_of(view, named).empty());
  const auto alone = [&view](const named_pair& by) {
    const auto found = choose_alone(view, by, 100);
    CHECK_FALSE((found && found->pair.prefill));
    return found ? found->pair.decode.address : std::string();
  };
  CHECK(alone(named) == "d0");
  CHECK(alone(read_names("none", "")) == "d1");
  CHECK(view.members[1].load->requests == 0);
  note_refusal(view, {{std::nullopt, view.members[1].engine}, false, leg::decode, false});
  CHECK(alone(named) == "d0");
  note_refusal(view, {{std::nullopt, view.members[1].engine}, false, leg::decode, true});
  CHECK(alone(named).empty());
  CHECK_FALSE(read_names("p0", "d0").alone);
}

TEST_CASE("who has just given a request back is the last choice, and SGLang's decode engines never alone") {
  group_view view;
  view.members = {member_of(fb::EngineRole::Prefill, "p", 0), member_of(fb::EngineRole::Decode, "d0", 0),
                  member_of(fb::EngineRole::Decode, "d1", 100)};
  action::choose_pair wish;
  wish.gave_back = "d0";
  auto found = choose(view, wish, {}, 100, true);
  CHECK(std::get<chosen_pair>(found).pair.decode.address == "d1");
  view.members.pop_back();
  found = choose(view, wish, {}, 100, true);
  CHECK(std::get<chosen_pair>(found).pair.decode.address == "d0");

  view.members[0].state = fb::EngineState::Down;
  found = choose(view, {}, {}, 100, true);
  CHECK_FALSE(std::get<chosen_pair>(found).pair.prefill);
  view.members[1].protocol = fb::KvProtocol::Sglang;
  found = choose(view, {}, {}, 100, true);
  REQUIRE(std::get_if<no_pair>(&found));
  CHECK(std::get<no_pair>(found).reason == "no prefill engine of the group is ready");
}
