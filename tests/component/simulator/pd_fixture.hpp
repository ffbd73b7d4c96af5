#pragma once

#include <future>
#include <utility>

#include "tests/component/simulator/engine_fixture.hpp"

namespace infernex::test {

inline constexpr auto chat_path = "/v1/chat/completions";

/// A prefill and a decode engine of one protocol.
struct pd_fixture {
  static simulator::settings values_of(simulator::transfer_protocol protocol, simulator::transfer_role role) {
    auto values = engine_fixture::fast();
    values.kv_transfer.protocol = protocol;
    values.kv_transfer.role = role;
    values.kv_transfer.timeout = std::chrono::seconds(5);
    values.faults = true;
    return values;
  }
  explicit pd_fixture(simulator::transfer_protocol protocol)
      : pd_fixture(values_of(protocol, simulator::transfer_role::prefill),
                   values_of(protocol, simulator::transfer_role::decode)) {}
  pd_fixture(const simulator::settings& for_prefill, const simulator::settings& for_decode)
      : prefill(for_prefill), decode(for_decode) {}

  engine_fixture prefill;
  engine_fixture decode;
};

/// 300 tokens and more, 18 whole blocks and a rest.
inline json::object long_chat(int max_tokens) {
  auto body = chat_body(std::string(900, 'k') + " and so on", max_tokens);
  body["stream"] = false;
  return body;
}

inline json::object with_transfer(json::object body, json::value params) {
  body["kv_transfer_params"] = std::move(params);
  return body;
}

/// As proxies ask for a prefill: one token, not streamed.
inline json::object prefill_of(json::object body, json::value params) {
  body["stream"] = false;
  body["max_tokens"] = 1;
  body.erase("stream_options");
  return with_transfer(std::move(body), std::move(params));
}

inline json::object state_of(const engine_fixture& sim) { return sim.get("/sim/state").parsed().as_object(); }

/// Nothing is left of any request.
inline bool is_idle(const engine_fixture& sim) {
  const auto state = state_of(sim);
  const auto none = [&](const char* what) { return state.at(what).to_number<int>() == 0; };
  return none("running") && none("waiting") && none("answering") && none("taking") &&
         state.at("kv_blocks").at("used").to_number<int>() == 0 && state.at("leases").as_array().empty();
}
inline bool becomes_idle(const engine_fixture& sim) {
  return eventually([&] { return is_idle(sim); });
}

inline void arm(const engine_fixture& sim, const json::object& fault) {
  REQUIRE(sim.post("/sim/faults", fault).status == 200);
}

inline std::string said(const reply& answer) {
  INFO(answer.body);
  REQUIRE(answer.status == 200);
  return text_of(answer.parsed().at("choices").at(0).at("message").at("content"));
}

inline int cached_tokens(const reply& answer) {
  return answer.parsed().at("usage").at("prompt_tokens_details").at("cached_tokens").to_number<int>();
}

/// A request that is answered while the test goes on.
inline std::future<reply> post_later(const engine_fixture& sim, json::object body, std::string id = {}) {
  return std::async(std::launch::async,
                    [&sim, body = std::move(body), id = std::move(id)] { return sim.post(chat_path, body, id); });
}

}  // namespace infernex::test
