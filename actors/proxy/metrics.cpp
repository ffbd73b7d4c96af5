#include "actors/proxy/metrics.hpp"

namespace infernex::proxy {
namespace {

prometheus::Counter* requests_by(metrics_registry& r, const char* outcome) {
  return &r.counter("infernex_proxy_requests_total", "Requests by how they ended", {{"outcome", outcome}});
}

/// In seconds: 5 us to a millisecond finely, for that is what is looked for.
const std::vector<double>& added_buckets() {
  static const std::vector<double> buckets{
      0.000005, 0.0000075, 0.00001,  0.000015, 0.00002,  0.000025, 0.00003, 0.00004, 0.00005, 0.000065,
      0.00008,  0.0001,    0.000125, 0.00015,  0.000175, 0.0002,   0.00025, 0.0003,  0.0004,  0.0005,
      0.00065,  0.0008,    0.001,    0.0025,   0.005,    0.01,     0.025,   0.1,     1};
  return buckets;
}

}  // namespace

exchange_metrics::exchange_metrics(metrics_registry& r)
    : retries(r.counter("infernex_proxy_retries_total", "Attempts at another pair before the first token")),
      local_prefills(
          r.counter("infernex_proxy_local_prefills_total",
                    "Requests whose prompt a decode engine computed itself, for want of a prefill engine or as "
                    "it was told")),
      migrations(r.counter("infernex_proxy_migrations_total", "Half-finished answers that went to another pair")),
      recomputed(r.counter("infernex_proxy_recomputed_total", "Requests that decode engines gave back")),
      releases(r.counter("infernex_proxy_releases_total", "Stranded blocks of prefill engines that were let go")),
      ttft(r.histogram("infernex_proxy_ttft_seconds", "From a streaming request's first byte to its first token",
                       request_buckets())),
      added_ttft(r.histogram("infernex_proxy_added_ttft_seconds",
                             "Part of the time to first token that was spent in neither leg", added_buckets())),
      prefill_seconds(
          r.histogram("infernex_proxy_prefill_seconds", "Answer times of prefill engines", request_buckets())),
      requests_{requests_by(r, "answered"), requests_by(r, "failed"), requests_by(r, "refused"),
                requests_by(r, "client_gone")} {}

}  // namespace infernex::proxy
