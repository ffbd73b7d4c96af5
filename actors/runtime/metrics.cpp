#include "actors/runtime/metrics.hpp"

#include <prometheus/registry.h>
#include <prometheus/text_serializer.h>

namespace infernex {

namespace {

/// Registering a name again merges with its family, so there is one family a name; prometheus-cpp itself
/// refuses (std::invalid_argument) a name that is already taken by another type.
template <class Builder>
auto& family_of(Builder builder, const std::string& name, const std::string& help, prometheus::Registry& registry) {
  return builder.Name(name).Help(help).Register(registry);
}

}  // namespace

metrics_registry::metrics_registry()
    : registry_(std::make_shared<prometheus::Registry>(prometheus::Registry::InsertBehavior::Merge)) {}

metrics_registry::~metrics_registry() = default;

prometheus::Counter& metrics_registry::counter(const std::string& name, const std::string& help, const labels& with) {
  return family_of(prometheus::BuildCounter(), name, help, *registry_).Add(with);
}

prometheus::Gauge& metrics_registry::gauge(const std::string& name, const std::string& help, const labels& with) {
  return family_of(prometheus::BuildGauge(), name, help, *registry_).Add(with);
}

prometheus::Histogram& metrics_registry::histogram(const std::string& name, const std::string& help,
                                                   const std::vector<double>& buckets, const labels& with) {
  return family_of(prometheus::BuildHistogram(), name, help, *registry_).Add(with, buckets);
}

std::string metrics_registry::render() const { return prometheus::TextSerializer().Serialize(registry_->Collect()); }

void catch_up(prometheus::Counter& counter, double total) {
  if (const double missing = total - counter.Value(); missing > 0) counter.Increment(missing);
}

const std::vector<double>& request_buckets() {
  static const std::vector<double> buckets{0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25,
                                           0.5,   1,      2.5,   5,    10,    30,   60,  120};
  return buckets;
}

const std::vector<double>& internal_buckets() {
  static const std::vector<double> buckets{0.00001, 0.000025, 0.00005, 0.0001, 0.00025, 0.0005, 0.001, 0.0025,
                                           0.005,   0.01,     0.025,   0.05,   0.1,     0.25,   0.5,   1};
  return buckets;
}

}  // namespace infernex
