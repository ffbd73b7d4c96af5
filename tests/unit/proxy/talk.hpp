#pragma once

// A conversation to be talked to, and what its engines say.

#include "actors/proxy/conversation.hpp"

namespace infernex::proxy {

inline engine_ref engine(const std::string& name) { return {name, "http://" + name, name, {}, {}, {}}; }
inline const std::string params_answer =
    R"({"usage":{"prompt_tokens":9},"kv_transfer_params":{"remote_engine_id":"p"}})";
inline const std::string text_event =
    R"(data: {"id":"a","choices":[{"index":0,"delta":{"content":"one "},"finish_reason":null}]})"
    "\n\n";
inline const std::string end_event = R"(data: {"id":"a","choices":[{"index":0,"delta":{},"finish_reason":"stop"}]})"
                                     "\n\ndata: [DONE]\n\n";
inline const std::string recomputed_event =
    R"(data: {"id":"a","choices":[{"index":0,"delta":{},"finish_reason":"stop","stop_reason":"recomputed"}]})"
    "\n\n";
inline const std::string engine_ids = R"({"0":{"engine_id":"e"}})";
inline const leg_failure broken{"broke the connection", false, false, true};
inline const leg_failure refused{"refused the connection", false, true};
inline const leg_failure slow{"did not answer in time", true, false};

/// A conversation, and what it wanted last.
struct talk {
  explicit talk(fb::KvProtocol by, bool stream = true, conversation_settings how = {})
      : protocol(by),
        body(std::string(R"({"messages":[{"role":"user","content":"hi"}])") + (stream ? R"(,"stream":true})" : "}")),
        it(how, *read_request(api::chat, body), body) {
    wanted = it.start();
  }
  template <class A>
  const A* find() const {
    for (const auto& w : wanted) {
      if (const auto* a = std::get_if<A>(&w)) return a;
    }
    return nullptr;
  }
  const action::send* sent(leg to) const {
    for (const auto& w : wanted) {
      const auto* a = std::get_if<action::send>(&w);
      if (a && a->to == to) return a;
    }
    return nullptr;
  }
  bool cancelled(leg which) const {
    for (const auto& w : wanted) {
      const auto* a = std::get_if<action::cancel>(&w);
      if (a && a->which == which) return true;
    }
    return false;
  }
  std::string forwarded() const {
    std::string all;
    for (const auto& w : wanted) {
      if (const auto* a = std::get_if<action::forward>(&w)) all += a->bytes;
    }
    return all;
  }
  void pair(const std::string& p, const std::string& d, std::string bootstrap = {}) {
    engine_pair to{std::nullopt, engine(d)};
    if (!p.empty()) to.prefill = engine(p);
    auto machine = p.empty() ? nullptr : make_protocol(protocol);
    wanted = it.on_pair(std::move(to), std::move(machine), "id", 1, "http://meta", std::move(bootstrap));
  }
  unsigned n() const { return it.attempt_number(); }
  void prefilled(unsigned status = 200, const std::string& answer = params_answer) {
    wanted = it.on_prefill_answer(n(), status, answer);
  }
  void failed(leg which, const leg_failure& how) { wanted = it.on_leg_failed(n(), which, how); }
  void piece(const std::string& bytes) { wanted = it.on_decode_piece(n(), bytes); }

  fb::KvProtocol protocol;
  std::string body;
  conversation it;
  actions wanted;
};

}  // namespace infernex::proxy
