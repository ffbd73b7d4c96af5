#include "actors/router/plugins/all.hpp"

namespace infernex::router::plugins {
namespace {

struct row {
  std::string_view name;
  std::string_view sentence;
};

constexpr row rows[] = {
    {"approx-prefix-cache-producer", "predictions are always kept where a plugin looks at cached blocks"},
    {"precise-prefix-cache-producer", "the KV index is always asked where a plugin looks at cached blocks"},
    {"burst-prefix-cache-producer", "requests placed together see each other's predictions anyway"},
    {"token-producer", "the gateway counts and hashes tokens before it asks for a place"},
    {"inflight-load-producer", "the router always counts what is in flight"},
    {"predicted-latency-producer", "the router learns each engine's speed from the requests it answers"},
    {"session-id-producer", "plugins that go by session read the request's headers themselves"},
    {"metrics-data-source", "agents read the engines' metrics"},
    {"core-metrics-extractor", "agents read the engines' metrics"},
    {"models-data-source", "agents ask the engines for their models"},
    {"models-extractor", "agents ask the engines for their models"},
    {"topology-extractor", "agents announce the node and labels of their engine"},
    {"endpoint-notification-source", "agents announce their engines themselves"},
    {"openai-parser", "the gateway reads requests"},
    {"anthropic-parser", "the gateway reads requests"},
    {"vllmhttp-parser", "the gateway reads requests"},
    {"sglanghttp-parser", "the gateway reads requests"},
};

}  // namespace

std::vector<plugin_type> producers() {
  std::vector<plugin_type> all;
  for (const auto& one : rows)
    all.push_back({one.name, one.sentence, "llm-d router", [](parameters& p) -> plugin_type::made {
                     p.ignore_the_rest("nothing to configure: the router has this data anyway");
                     return std::make_unique<producer>();
                   }});
  return all;
}

}  // namespace infernex::router::plugins
