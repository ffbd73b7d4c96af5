#include "diagnosis/metrics.hpp"

namespace infernex::diagnosis {

diagnosis_metrics::diagnosis_metrics(metrics_registry& r)
    : samples_(r.counter("infernex_diagnosis_samples_total", "Samples of nodes taken in")),
      device_samples_(r.counter("infernex_diagnosis_device_samples_total", "Samples of devices taken in")),
      events_(r.counter("infernex_diagnosis_events_total", "Events taken in")),
      refused_(r.counter("infernex_diagnosis_refused_total", "Nodes, devices or changes over a bound")),
      impostors_(r.counter("infernex_diagnosis_impostors_total",
                           "Messages that named another node than the subject they came by")),
      not_sent_(r.counter("infernex_diagnosis_not_sent_total", "Verdicts that the bus did not take")),
      raised_(r.counter("infernex_diagnosis_verdicts_raised_total", "Verdicts raised")),
      cleared_(r.counter("infernex_diagnosis_verdicts_cleared_total", "Verdicts cleared")),
      nodes_(r.gauge("infernex_diagnosis_nodes", "Nodes known")),
      devices_(r.gauge("infernex_diagnosis_devices", "Devices known")),
      bytes_(r.gauge("infernex_diagnosis_state_bytes", "Memory of all devices' states")) {
  for (std::size_t i = 1; i < standing_.size(); ++i)
    standing_[i] = &r.gauge("infernex_diagnosis_standing_verdicts", "Verdicts that stand, symptoms apart",
                            {{"severity", std::string(name(static_cast<severity>(i)))}});
}

void diagnosis_metrics::update(const engine& from, std::uint64_t impostors, std::uint64_t not_sent) {
  const auto& counts = from.counts();
  catch_up(samples_, static_cast<double>(counts.samples));
  catch_up(device_samples_, static_cast<double>(counts.device_samples));
  catch_up(events_, static_cast<double>(counts.events));
  catch_up(refused_, static_cast<double>(counts.refused + from.book().not_kept()));
  catch_up(impostors_, static_cast<double>(impostors));
  catch_up(not_sent_, static_cast<double>(not_sent));
  catch_up(raised_, static_cast<double>(from.book().raised()));
  catch_up(cleared_, static_cast<double>(from.book().cleared()));
  nodes_.Set(static_cast<double>(from.nodes()));
  devices_.Set(static_cast<double>(from.devices()));
  bytes_.Set(static_cast<double>(from.bytes()));
  std::array<double, 5> standing{};
  for (const auto& one : from.book().all_standing())
    if (one->suppressed_by.empty()) ++standing[static_cast<std::size_t>(one->grade)];
  for (std::size_t i = 1; i < standing.size(); ++i) standing_[i]->Set(standing[i]);
}

}  // namespace infernex::diagnosis
