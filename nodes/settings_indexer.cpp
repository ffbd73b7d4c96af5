#include "nodes/settings.hpp"

namespace infernex::nodes {

using namespace std::chrono_literals;

void read_indexer(config::section at, indexer::settings& into) {
  at.read("admin_address", into.admin_address)
      .read("admin_port", into.admin_port, 0, 65'535)
      .read("max_models", into.index.max_models, 1, 65'536)
      .read_bytes("max_bytes", into.index.max_bytes, 1 << 20, 1ULL << 44)
      .read("max_instances", into.index.per_model.max_instances, 1, 3'840)
      .read("delta_credit", into.delta_credit, 1, 1'000'000)
      .read("announce_credit", into.announce_credit, 1, 1'000'000)
      .read("match_credit", into.match_credit, 1, 1'000'000)
      .read("patience", into.tracking.sync.patience, 0ms, 60s)
      .read("answer_timeout", into.tracking.sync.answer_timeout, 10ms, 10min)
      .read("max_backoff", into.tracking.sync.max_backoff, 10ms, 1h)
      .read("max_snapshots", into.tracking.sync.max_snapshots, 1, 4'096)
      .read("silence", into.tracking.sync.silence, 500ms, 10min)
      .read("forget", into.tracking.sync.forget, 1s, 24h)
      .read("listen_first", into.ready.listen_first, 0ms, 60s)
      .read("listen_alone", into.ready.listen_alone, 0ms, 60s)
      .read("ready_patience", into.ready.patience, 0ms, 1h)
      .read_bytes("max_body_bytes", into.max_body_bytes, 1 << 10, 1 << 30)
      .read("request_timeout", into.request_timeout, 10ms, 10min)
      .read("max_registered", into.max_registered, 0, 4'096)
      .read("allow_register", into.allow_register);
  into.engines.forget = into.tracking.sync.forget;
  into.index.per_model.max_bytes = into.index.max_bytes;
}

}  // namespace infernex::nodes
