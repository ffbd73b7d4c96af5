#include "nodes/settings.hpp"

namespace infernex::nodes {

using namespace std::chrono_literals;

namespace {

void read_engines(config::section& at, std::string_view key, std::vector<std::string>& into) {
  at.read(key, into);
  for (const auto& engine : into) {
    if (const auto address = proxy::address_of(engine); !address) at.complain(key, address.failure().detail);
  }
}

void read_exchange(config::section& at, proxy::exchange_settings& into) {
  at.read("connect_timeout", into.connect_timeout, 10ms, 60s)
      .read("prefill_timeout", into.prefill_timeout, 10ms, 1h)
      .read("first_token_timeout", into.first_token_timeout, 10ms, 1h)
      .read("pair_wait", into.pair_wait, 0ms, 10min)
      .read("stream_idle_timeout", into.stream_idle_timeout, 10ms, 1h)
      .read("timeout", into.timeout, 10ms, 24h)
      .read("release_timeout", into.release_timeout, 10ms, 60s)
      .read_bytes("max_answer_bytes", into.max_answer_bytes, 1 << 10, 1ULL << 34)
      .read("max_attempts", into.tries.max_attempts, 1, 16)
      .read("max_prefill_attempts", into.tries.max_prefill_attempts, 1, 16)
      .read("max_migrations", into.tries.max_migrations, 0, 16)
      .read("local_prefill", into.tries.local_prefill);
}

}  // namespace

void read_proxy(config::section at, proxy::settings& into) {
  at.read("address", into.address)
      .read("port", into.port, 0, 65'535)
      .read("url", into.url)
      .read("threads", into.threads, 0, 256)
      .read_bytes("max_body_bytes", into.max_body_bytes, 1 << 10, 1ULL << 30)
      .read("max_in_flight", into.max_in_flight, 1, 1'000'000)
      .read("group", into.group.name)
      .read_choice("protocol", into.group.protocol,
                   {{"auto", fb::KvProtocol::None},
                    {"nixl", fb::KvProtocol::Nixl},
                    {"mooncake", fb::KvProtocol::Mooncake},
                    {"ascend", fb::KvProtocol::Ascend},
                    {"ascend-layerwise", fb::KvProtocol::AscendLayerwise},
                    {"sglang", fb::KvProtocol::Sglang}})
      .read("bootstrap_port", into.group.bootstrap_port, 1, 65'535)
      .read("silence", into.group.silence, 500ms, 10min)
      .read("max_engines", into.group.max_engines, 2, 4'096)
      .read("probe_interval", into.probe_interval, 50ms, 60s)
      .read("probe_timeout", into.probe_timeout, 10ms, 60s)
      .read("add_timeout", into.add_timeout, 0ms, 1h)
      .read("scrape_timeout", into.scrape_timeout, 10ms, 60s)
      .read_bytes("max_scrape_bytes", into.max_scrape_bytes, 1 << 10, 1 << 28)
      .read("announce_credit", into.announce_credit, 1, 1'000'000);
  read_engines(at, "prefill", into.group.prefill);
  read_engines(at, "decode", into.group.decode);
  if (!into.group.prefill.empty() && into.group.protocol == fb::KvProtocol::None)
    at.complain("prefill", "listed engines do not say how they hand KV blocks over: `protocol` must");
  read_exchange(at, into.exchange);
  at.below("breaker")
      .read("failures", into.group.breaker.failures, 1, 1'000)
      .read("first_pause", into.group.breaker.first_pause, 10ms, 10min)
      .read("most_pause", into.group.breaker.most_pause, 10ms, 1h);
  if (!into.url.empty() && !into.url.starts_with("http://")) at.complain("url", "must start with http://");
}

}  // namespace infernex::nodes
