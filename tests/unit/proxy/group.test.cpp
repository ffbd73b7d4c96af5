#include "actors/proxy/group.hpp"

#include <doctest/doctest.h>

#include "actors/proxy/bootstrap_memory.hpp"
#include "actors/proxy/choose.hpp"
#include "messages/view.hpp"

using namespace infernex;
using namespace infernex::proxy;
using namespace std::chrono_literals;

namespace {

const clock_point start{1h};

struct announced {
  fb::EngineAnnounceT message;
  announced(const std::string& instance, const std::string& address, fb::EngineRole role) {
    message.origin = std::make_unique<fb::OriginT>();
    message.instance = instance;
    message.url = "http://" + address;
    message.role = role;
    message.state = fb::EngineState::Ready;
    message.pd_group = "g";
    message.model = "m";
    message.kv_transfer = std::make_unique<fb::KvTransferT>();
    message.kv_transfer->protocol = fb::KvProtocol::Nixl;
    message.kv_transfer->engine_id = "e1";
  }
  announced& began(std::uint64_t epoch) {
    message.engine_epoch = epoch;
    return *this;
  }
  bool to(group& g, clock_point now) const {
    flatbuffers::FlatBufferBuilder builder;
    builder.Finish(fb::EngineAnnounce::Pack(builder, &message));
    return g.on_announce(*flatbuffers::GetRoot<fb::EngineAnnounce>(builder.GetBufferPointer()), now);
  }
};

group_settings named(const char* name = "g") {
  group_settings how;
  how.name = name;
  return how;
}

group two_by_two() {
  group g(named());
  announced("p-0", "10.0.0.1:80", fb::EngineRole::Prefill).to(g, start);
  announced("p-1", "10.0.0.2:80", fb::EngineRole::Prefill).to(g, start);
  announced("d-0", "10.0.0.3:80", fb::EngineRole::Decode).to(g, start);
  announced("d-1", "10.0.0.4:80", fb::EngineRole::Decode).to(g, start);
  return g;
}

/// Addresses of the chosen pair, or why there is none.
std::string pick(const group_view& view, const action::choose_pair& wish = {}, const named_pair& named = {},
                 bool local = true) {
  auto found = choose(view, wish, named, 4000, local);
  if (const auto* none = std::get_if<no_pair>(&found)) return none->reason;
  const auto& pair = std::get<chosen_pair>(found).pair;
  return (pair.prefill ? pair.prefill->address : "-") + " " + pair.decode.address;
}

}  // namespace

TEST_CASE("who belongs to the group: those that announce its name and a role") {
  group g(named());
  CHECK(announced("p-0", "10.0.0.1:80", fb::EngineRole::Prefill).to(g, start));
  CHECK_FALSE(announced("p-0", "10.0.0.1:80", fb::EngineRole::Prefill).to(g, start + 1s));
  auto other = announced("p-9", "10.0.0.9:80", fb::EngineRole::Prefill);
  other.message.pd_group = "else";
  CHECK_FALSE(other.to(g, start));
  CHECK_FALSE(announced("a", "10.0.0.8:80", fb::EngineRole::Aggregated).to(g, start));
  auto bad = announced("b", "10.0.0.8:80", fb::EngineRole::Decode);
  bad.message.url = "https://x/";
  CHECK_FALSE(bad.to(g, start));
  CHECK(g.refused() == 1);
  const auto view = g.view();
  REQUIRE(view->members.size() == 1);
  CHECK(view->members[0].engine.engine_id == "e1");
  CHECK(view->usable(fb::EngineRole::Prefill) == 1);
}

TEST_CASE("silence ends membership, but not while the bus is away; a listed engine is probed again") {
  auto how = named();
  how.decode = {"10.0.0.3:80"};
  group g(how);
  announced("p-0", "10.0.0.1:80", fb::EngineRole::Prefill).to(g, start);
  announced("d-0", "10.0.0.3:80", fb::EngineRole::Decode).to(g, start);
  REQUIRE(g.view()->members.size() == 2);
  CHECK_FALSE(g.on_tick(start + 1min, false));
  CHECK(g.on_tick(start + 1min, true));
  const auto view = g.view();
  REQUIRE(view->members.size() == 1);
  CHECK(view->members[0].engine.address == "10.0.0.3:80");
  CHECK(view->members[0].probed);
  CHECK_FALSE(view->members[0].usable());
  CHECK(g.on_probe("10.0.0.3:80", true));
  CHECK(g.view()->members[0].usable());
}

TEST_CASE("operators: add waits for a probe, remove drains, and an announcement does not undo it") {
  group g(named());
  CHECK(g.add(fb::EngineRole::Decode, "10.0.0.3:80").code == errc::none);
  CHECK(g.add(fb::EngineRole::Decode, "10.0.0.3").code == errc::invalid_request);
  CHECK(g.add(fb::EngineRole::Prefill, "10.0.0.3:80").code == errc::invalid_request);
  CHECK(g.remove(fb::EngineRole::Decode, "10.0.0.7:80").code == errc::not_found);
  CHECK(g.view()->usable(fb::EngineRole::Decode) == 0);
  g.on_probe("10.0.0.3:80", true);
  CHECK(g.view()->usable(fb::EngineRole::Decode) == 1);
  std::optional<pair_charge> busy(std::in_place, nullptr, g.view()->members[0].load, 10);
  CHECK(g.remove(fb::EngineRole::Decode, "10.0.0.3:80").code == errc::none);
  CHECK(g.view()->usable(fb::EngineRole::Decode) == 0);
  g.on_tick(start, true);
  CHECK(g.view()->members.size() == 1);
  announced("d-0", "10.0.0.3:80", fb::EngineRole::Decode).to(g, start);
  CHECK(g.view()->usable(fb::EngineRole::Decode) == 0);
  busy.reset();
  CHECK(g.on_tick(start, true));
  CHECK(g.view()->members.empty());
  CHECK(g.add(fb::EngineRole::Decode, "10.0.0.3:80").code == errc::none);
  announced("d-0", "10.0.0.3:80", fb::EngineRole::Decode).to(g, start);
  CHECK(g.view()->usable(fb::EngineRole::Decode) == 1);
}

TEST_CASE("an address that was removed is free again when nobody has announced it for a while") {
  auto g = two_by_two();
  CHECK(g.remove(fb::EngineRole::Decode, "10.0.0.4:80").code == errc::none);
  g.on_tick(start, true);
  const auto later = announced("d-7", "10.0.0.4:80", fb::EngineRole::Decode);
  CHECK_FALSE(later.to(g, start + 1s));
  g.on_tick(start + 2s, true);
  CHECK_FALSE(later.to(g, start + 2s));
  g.on_tick(start + 2s + named().silence + 1s, true);
  CHECK(later.to(g, start + 1min));
}

TEST_CASE("a group is of one model") {
  group g(named());
  CHECK(g.model().empty());
  announced("p-0", "10.0.0.1:80", fb::EngineRole::Prefill).to(g, start);
  auto other = announced("d-0", "10.0.0.3:80", fb::EngineRole::Decode);
  other.message.model = "another";
  CHECK_FALSE(other.to(g, start));
  CHECK(g.refused() == 1);
  CHECK(g.model() == "m");
  CHECK(g.view()->members.size() == 1);
}

TEST_CASE("the pair of least load; a charge counts until it ends") {
  auto g = two_by_two();
  const auto view = g.view();
  auto first = choose(*view, {}, {}, 4000, true);
  CHECK(std::get<chosen_pair>(first).pair.prefill->address == "10.0.0.1:80");
  CHECK(std::get<chosen_pair>(first).protocol == fb::KvProtocol::Nixl);
  CHECK(pick(*view) == "10.0.0.2:80 10.0.0.4:80");
  // Computed, but held until decode has fetched it.
  std::get<chosen_pair>(first).charge.prefilled();
  CHECK(view->members[2].load->active == 0);
  CHECK(view->members[2].load->held == prefill_score(4000));
  std::get<chosen_pair>(first).charge.fetched();
  CHECK(pick(*view) == "10.0.0.1:80 10.0.0.4:80");
  first = no_pair{};
  CHECK(pick(*view) == "10.0.0.1:80 10.0.0.3:80");
  CHECK(prefill_score(4000) == 154'574);
}

TEST_CASE("wishes: engines to avoid, decode to keep, decode alone") {
  auto g = two_by_two();
  const auto view = g.view();
  CHECK(pick(*view, {{"10.0.0.1:80"}, {}, "10.0.0.4:80", false}) == "10.0.0.2:80 10.0.0.4:80");
  CHECK(pick(*view, {{"10.0.0.1:80", "10.0.0.2:80"}, {}, {}, false}) == "- 10.0.0.3:80");
  CHECK(pick(*view, {{"10.0.0.1:80", "10.0.0.2:80"}, {}, {}, false}, {}, false) ==
        "no prefill engine of the group is ready");
  CHECK(pick(*view, {{}, {"10.0.0.3:80", "10.0.0.4:80"}, {}, false}) == "no decode engine of the group is ready");
  CHECK(pick(*view, {{}, {}, {}, true}) == "- 10.0.0.3:80");
}

TEST_CASE("a request may name members, in the order it wants them; strangers are told") {
  auto g = two_by_two();
  const auto view = g.view();
  const named_pair wanted{"10.0.0.2:80, 10.0.0.1:80", "10.0.0.4:80"};
  CHECK(stranger_of(*view, wanted).empty());
  CHECK(pick(*view, {}, wanted) == "10.0.0.2:80 10.0.0.4:80");
  CHECK(pick(*view, {{"10.0.0.2:80"}, {}, {}, false}, wanted) == "10.0.0.1:80 10.0.0.4:80");
  CHECK(stranger_of(*view, {"10.0.0.1:80,169.254.169.254:80", ""}) == "169.254.169.254:80");
  // In the group, but not with this role.
  CHECK(stranger_of(*view, {"10.0.0.3:80", ""}) == "10.0.0.3:80");
}

TEST_CASE("engines that do not say how they hand blocks over get nothing, unless it is configured") {
  group g(named());
  for (const auto* p : {"p-0", "d-0"}) {
    auto a = announced(p, p[0] == 'p' ? "10.0.0.1:80" : "10.0.0.3:80",
                       p[0] == 'p' ? fb::EngineRole::Prefill : fb::EngineRole::Decode);
    a.message.kv_transfer.reset();
    a.to(g, start);
  }
  CHECK(pick(*g.view()).find("proxy.protocol") != std::string::npos);
  auto how = named();
  how.protocol = fb::KvProtocol::Sglang;
  how.prefill = {"10.0.0.1:80"};
  how.decode = {"10.0.0.3:80"};
  group told(how);
  told.on_probe("10.0.0.1:80", true);
  told.on_probe("10.0.0.3:80", true);
  CHECK(pick(*told.view()) == "10.0.0.1:80 10.0.0.3:80");
}

TEST_CASE("a pair that fails again and again is put aside, tried once, and comes back") {
  auto g = two_by_two();
  const auto fail = [&g](clock_point now) { g.on_outcome("10.0.0.1:80", "10.0.0.3:80", false, now); };
  fail(start);
  fail(start);
  CHECK(pick(*g.view()) == "10.0.0.1:80 10.0.0.3:80");
  fail(start);
  CHECK(g.view()->pairs[0].breaker == fb::Breaker::Open);
  CHECK(pick(*g.view()) == "10.0.0.2:80 10.0.0.3:80");
  CHECK(g.breakers().opened() == 1);
  CHECK_FALSE(g.on_tick(start + 1s, false));
  CHECK(g.on_tick(start + 2s, false));
  const auto view = g.view();
  {
    const auto trial = choose(*view, {}, {}, 4000, true);
    CHECK(std::get<chosen_pair>(trial).pair.prefill->address == "10.0.0.1:80");
    // One trial at a time, also through a later view.
    CHECK(pick(*view) == "10.0.0.2:80 10.0.0.4:80");
    CHECK(pick(*g.view()) == "10.0.0.2:80 10.0.0.4:80");
  }
  // It ended without a word of success or failure, for its client had left: another one may try.
  CHECK(pick(*g.view()) == "10.0.0.1:80 10.0.0.3:80");
  // It fails: twice the pause.
  fail(start + 2s);
  CHECK_FALSE(g.on_tick(start + 5s, false));
  CHECK(g.on_tick(start + 6s, false));
  CHECK(pick(*g.view()) == "10.0.0.1:80 10.0.0.3:80");
  CHECK(g.on_outcome("10.0.0.1:80", "10.0.0.3:80", true, start + 7s));
  CHECK(g.view()->pairs.empty());
}

TEST_CASE("an engine that was started anew begins with a clean slate") {
  auto g = two_by_two();
  for (int i = 0; i < 3; ++i) g.on_outcome("10.0.0.1:80", "10.0.0.3:80", false, start);
  auto again = announced("p-0", "10.0.0.1:80", fb::EngineRole::Prefill);
  again.message.kv_transfer->engine_id = "e2";
  CHECK(again.to(g, start));
  CHECK(g.view()->pairs.empty());
}

TEST_CASE("a start is noticed by its epoch too, for not all engines announce an id; a first measurement is no start") {
  auto g = two_by_two();
  const auto failures = [&g] {
    for (int i = 0; i < 3; ++i) g.on_outcome("10.0.0.1:80", "10.0.0.3:80", false, start);
    return g.view()->pairs.size();
  };
  auto p = announced("p-0", "10.0.0.1:80", fb::EngineRole::Prefill);
  CHECK(failures() == 1);
  CHECK(p.began(7).to(g, start));
  CHECK(g.view()->pairs.size() == 1);
  const auto life = g.view()->find(fb::EngineRole::Prefill, "10.0.0.1:80")->engine.life();
  CHECK_FALSE(p.to(g, start));
  // Not measured this time.
  p.message.engine_epoch.reset();
  CHECK_FALSE(p.to(g, start));
  CHECK(p.began(8).to(g, start));
  CHECK(g.view()->pairs.empty());
  CHECK(g.view()->find(fb::EngineRole::Prefill, "10.0.0.1:80")->engine.life() != life);
}

TEST_CASE("that nobody listens at an engine is forgotten with the next tick, or when it is announced anew") {
  auto g = two_by_two();
  const auto load = g.view()->find(fb::EngineRole::Decode, "10.0.0.3:80")->load;
  load->refuses = true;
  announced("d-0", "10.0.0.3:80", fb::EngineRole::Decode).to(g, start);
  CHECK(load->refuses);
  announced("d-0", "10.0.0.3:80", fb::EngineRole::Decode).began(1).to(g, start);
  announced("d-0", "10.0.0.3:80", fb::EngineRole::Decode).began(2).to(g, start);
  CHECK_FALSE(load->refuses);
  load->refuses = true;
  g.on_tick(start, true);
  CHECK_FALSE(load->refuses);
}

TEST_CASE("the breaker's memory is bounded") {
  breaker_limits few;
  few.max_pairs = 3;
  pair_breaker b(few);
  for (int i = 0; i < 10; ++i) b.failed({"p", "d" + std::to_string(i)}, start + std::chrono::seconds(i));
  CHECK(b.entries().size() == 3);
  CHECK(b.entries().count({"p", "d9"}) == 1);
}

TEST_CASE("what a bootstrap endpoint said is true until the engine is another, or for a while") {
  bootstrap_memory m(10s, 2);
  m.put("a", "e1", "ids", start);
  CHECK(m.find("a", "e1", start + 9s) == "ids");
  CHECK(m.find("a", "e2", start + 9s).empty());
  CHECK(m.find("a", "e1", start + 9s).empty());
  m.put("a", "", "ids", start);
  CHECK(m.find("a", "", start + 10s).empty());
  m.put("a", "", "x", start);
  m.forget("a");
  CHECK(m.find("a", "", start).empty());
  m.put("a", "", "a", start);
  m.put("b", "", "b", start + 1s);
  m.put("c", "", "c", start + 2s);
  CHECK(m.find("a", "", start + 2s).empty());
  CHECK(m.find("c", "", start + 2s) == "c");
}

TEST_CASE("addresses") {
  CHECK(*address_of("http://h:80/") == "h:80");
  CHECK(*address_of("10.0.0.1:8000") == "10.0.0.1:8000");
  for (const auto* bad : {"", "h", "h:", ":80", "h:0", "h:70000", "u@h:80", "h:80x", "https://h:80x"})
    CHECK_MESSAGE(!address_of(bad), bad);
}
