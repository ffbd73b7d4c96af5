#pragma once

#include <map>
#include <memory>
#include <string>
#include <vector>

#include <prometheus/counter.h>
#include <prometheus/gauge.h>
#include <prometheus/histogram.h>

namespace prometheus {
class Registry;
}

namespace infernex {

/// The metrics of one process. Names follow `infernex_<part>_<what>_<unit>`, counters end in `_total`,
/// durations are in seconds. A returned reference lives as long as the registry; asking again with the
/// same name and labels gives the same object. Thread-safe; increments are lock-free, asking is not: keep the
/// reference. A name already taken by another type, or an invalid name, throws std::invalid_argument (at start-up).
class metrics_registry {
 public:
  using labels = std::map<std::string, std::string>;

  metrics_registry();
  ~metrics_registry();

  prometheus::Counter& counter(const std::string& name, const std::string& help, const labels& with = {});
  prometheus::Gauge& gauge(const std::string& name, const std::string& help, const labels& with = {});
  prometheus::Histogram& histogram(const std::string& name, const std::string& help, const std::vector<double>& buckets,
                                   const labels& with = {});

  /// Prometheus text format 0.0.4.
  std::string render() const;

 private:
  std::shared_ptr<prometheus::Registry> registry_;
};

/// Brings a counter up to a running total that is kept elsewhere.
void catch_up(prometheus::Counter& counter, double total);

/// Buckets in seconds for latencies of a request (1 ms .. 120 s) and of internal work (10 us .. 1 s).
const std::vector<double>& request_buckets();
const std::vector<double>& internal_buckets();

}  // namespace infernex
