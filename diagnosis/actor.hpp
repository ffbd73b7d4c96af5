#pragma once

#include <memory>

#include "actors/actors.hpp"
#include "actors/runtime/role.hpp"
#include "diagnosis/metrics.hpp"
#include "diagnosis/report.hpp"
#include "diagnosis/settings.hpp"
#include "messages/published.hpp"

namespace infernex::diagnosis {

/// What the diagnosis knows. Only the actor's present incarnation changes it; it lives on when that is restarted.
struct diagnosis_facts {
  diagnosis_facts(const runtime& process, const settings& how, std::shared_ptr<const knowledge> base)
      : rules(std::move(base), how.limits),
        repeat(how.repeat),
        source("diagnosis/" + process.process),
        epoch(process.epoch),
        metrics(process.metrics) {}

  engine rules;
  std::chrono::milliseconds repeat;
  std::string source;
  std::uint64_t epoch;
  std::uint64_t sequence = 0;
  std::uint64_t not_sent = 0;
  /// Samples that said another node's name than their subject.
  std::uint64_t impostors = 0;
  diagnosis_metrics metrics;
  /// For the HTTP thread.
  published<fleet_report> report;
};

/// Feeds the engine from the bus and publishes what changes.
diagnosis_actor spawn_diagnosis_actor(const runtime& process, const settings& how,
                                      std::shared_ptr<diagnosis_facts> facts);

/// A running diagnosis; its HTTP port, if it has one, for tests.
class diagnosis_role : public role {
 public:
  virtual std::optional<std::uint16_t> port() const = 0;
};

/// Starts it: the knowledge base, its actor under a supervisor, its HTTP endpoint. Errors: invalid_request (mistakes in
/// the knowledge base, which are logged), system_error (address in use).
result<std::unique_ptr<diagnosis_role>> start(const runtime& process, const settings& how);

}  // namespace infernex::diagnosis
