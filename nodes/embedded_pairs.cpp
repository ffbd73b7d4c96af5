#include "nodes/embedded_pairs.hpp"

#include <algorithm>

#include "actors/proxy/in_process.hpp"

namespace infernex::nodes {
namespace {

class told_gateway final : public proxy::pair_listener {
 public:
  explicit told_gateway(gateway::pair_listener& to) : to_(to) {}
  void on_pair(std::string_view prefill, std::string_view decode) override { to_.on_pair(prefill, decode); }
  void on_prefilled() override { to_.on_prefilled(); }

 private:
  gateway::pair_listener& to_;
};

class embedded_exchange final : public gateway::pair_exchange {
 public:
  embedded_exchange(proxy::in_process& all, http::worker& on) : thread_(all, on) {}

  http::task<gateway::pair_result> run(gateway::api kind, const gateway::candidate& to, const std::string& target,
                                       const std::string& request_id, http::request& in, http::responder& out,
                                       gateway::pair_listener& heard) override {
    told_gateway told(heard);
    proxy::named_request what;
    what.kind = kind == gateway::api::chat ? proxy::api::chat : proxy::api::completions;
    what.target = target;
    what.request_id = request_id;
    what.group = to.pd_group;
    what.prefill = to.prefill_instance;
    what.decode = to.instance;
    what.alone = to.prefills_itself();
    auto done = co_await thread_.run(std::move(what), in, out, told);
    gateway::pair_result result;
    result.bad_body = std::move(done.bad_body);
    result.unusable = std::move(done.unknown);
    result.client_gone = done.ended.how == proxy::outcome::client_gone;
    result.failed = done.ended.how == proxy::outcome::failed;
    result.story = std::move(done.ended.story);
    co_return result;
  }

 private:
  proxy::in_process::thread thread_;
};

class embedded_exchanges final : public gateway::pair_exchanges {
 public:
  embedded_exchanges(metrics_registry& metrics, proxy::in_process::settings how) : proxy_(metrics, std::move(how)) {}

  std::unique_ptr<gateway::pair_exchange> for_thread(http::worker& on) override {
    return std::make_unique<embedded_exchange>(proxy_, on);
  }
  void on_announce(const fb::EngineAnnounce& engine, gateway::clock_point now) override {
    proxy_.on_announce(engine, now);
  }
  void on_tick(gateway::clock_point now, bool bus_is_there) override { proxy_.on_tick(now, bus_is_there); }
  void reached_at(std::string url) override { proxy_.reached_at(std::move(url)); }
  http::task<void> serve_metaserver(http::worker& on, http::request& in, http::responder& out) override {
    return proxy_.serve_metaserver(on, in, out);
  }

 private:
  proxy::in_process proxy_;
};

}  // namespace

std::shared_ptr<gateway::pair_exchanges> make_embedded_pairs(metrics_registry& metrics, const node_settings& settings) {
  if (settings.gateway.pd != gateway::pd_mode::embedded) return nullptr;
  proxy::in_process::settings how;
  how.group = settings.proxy.group;
  how.group.prefill.clear();
  how.group.decode.clear();
  how.exchange = settings.proxy.exchange;
  auto& e = how.exchange;
  e.timeout = std::min(e.timeout, settings.gateway.timeout);
  e.stream_idle_timeout = std::min(e.stream_idle_timeout, settings.gateway.stream_idle_timeout);
  e.max_answer_bytes = std::min(e.max_answer_bytes, settings.gateway.max_answer_bytes);
  return std::make_shared<embedded_exchanges>(metrics, std::move(how));
}

}  // namespace infernex::nodes
