#include <algorithm>

#include "monitor/sim_effects.hpp"

// Faults of the device's memory. Codes and what follows from what: reference, 1.5 and 2.1.
namespace infernex::monitor {

namespace {

constexpr std::uint64_t multi_bit_code = 0x80E01801;
constexpr std::uint64_t worn_out_code = 0x80E18402;

void multi_bit_error(sim_scene& at) {
  auto& d = at.device;
  const auto pid = 1000 + at.random.below(30'000);
  d.counts.ecc_double += 1;
  d.counts.ecc_double_lifetime += 1;
  if (at.ascend()) {
    d.counts.pages_pending += 1;
    at.journal.code(d, multi_bit_code, fb::HwAssertion::Raised, fb::HwLevel::Critical);
    return;
  }
  d.counts.rows_uncorrectable += 1;
  d.condition.row_pending = true;
  d.condition.recovery_action = 1;
  at.journal.xid(d, 48, "An uncorrectable double bit error (DBE) has been detected on GPU", pid);
  at.journal.xid(d, 63, "Row Remapper: New row marked for remapping, reset gpu to activate.");
  if (at.random.below(3) == 0)
    at.journal.xid(d, 95, "Uncontained: FBHUB. RST: Yes, D-RST: No", pid);
  else
    at.journal.xid(d, 94, "Contained: CE User Channel. RST: No, D-RST: No", pid);
}

/// Strength: errors a day, in thousands. Visible as a storm from the 25th on (reference, rule 5).
void single_bit_errors(sim_scene& at) {
  auto& d = at.device;
  at.progress.carry += at.strength() * 1000 / 86'400 * at.seconds * 2 * at.random.uniform();
  while (at.progress.carry >= 1) {
    at.progress.carry -= 1;
    d.counts.ecc_single += 1;
    d.counts.ecc_single_lifetime += 1;
    if (++at.progress.count < 25) continue;
    at.show();
    if (at.progress.count == 25 && !at.ascend() && at.strength() >= 1)
      at.journal.xid(d, 92, "High single-bit ECC error rate");
  }
}

/// Strength: how many pages go, spread over its time.
void retire_pages(sim_scene& at) {
  const double pages = std::max(1.0, at.strength());
  if (at.now_ms < at.progress.next_ms || at.progress.count >= pages) return;
  auto& c = at.device.counts;
  c.pages_double += 1;
  c.ecc_double_lifetime += 1;
  ++at.progress.count;
  at.progress.next_ms = at.now_ms + static_cast<std::uint64_t>(static_cast<double>(at.truth.fault.for_ms) / pages);
  at.show();
}

}  // namespace

bool begin_memory_fault(sim_scene& at) {
  auto& d = at.device;
  switch (at.truth.fault.kind) {
    case fault_kind::ecc_double:
      multi_bit_error(at);
      break;
    case fault_kind::page_limit:
      d.counts.pages_double = std::max(d.counts.pages_double, 64.0);
      d.counts.ecc_double_lifetime += 1;
      at.journal.code(d, worn_out_code, fb::HwAssertion::Raised, fb::HwLevel::Critical);
      break;
    case fault_kind::row_remap_pending:
      d.condition.row_pending = true;
      d.condition.recovery_action = 1;
      d.counts.rows_correctable += 1;
      at.journal.xid(d, 63, "Row Remapper: New row marked for remapping, reset gpu to activate.");
      break;
    case fault_kind::row_remap_failure:
      d.condition.row_failure = true;
      d.counts.rows_uncorrectable += 1;
      at.journal.xid(d, 64, "Row Remapper: Error happened while adding row for remapping");
      break;
    case fault_kind::memory_halved:
      d.condition.memory_share = 0.5;
      at.inventory_changed = true;
      break;
    case fault_kind::ecc_single:
    case fault_kind::page_retirement:
      return true;
    default:
      return false;
  }
  at.show();
  return true;
}

bool continue_memory_fault(sim_scene& at) {
  if (at.truth.fault.kind == fault_kind::ecc_single) {
    single_bit_errors(at);
    return true;
  }
  if (at.truth.fault.kind != fault_kind::page_retirement) return false;
  retire_pages(at);
  return true;
}

bool end_memory_fault(sim_scene& at) {
  auto& d = at.device;
  const auto clear = [&at, &d](std::uint64_t code) {
    at.journal.code(d, code, fb::HwAssertion::Cleared, fb::HwLevel::Critical);
  };
  switch (at.truth.fault.kind) {
    case fault_kind::ecc_double:
      clear(multi_bit_code);
      break;
    case fault_kind::memory_halved:
      d.condition.memory_share = 1;
      at.inventory_changed = true;
      break;
    case fault_kind::ecc_single:
    case fault_kind::page_retirement:
    case fault_kind::row_remap_pending:
      break;
    case fault_kind::page_limit:
    case fault_kind::row_remap_failure:
      clear(worn_out_code);
      d.replace(at.random);
      at.inventory_changed = true;
      at.journal.add(d, fb::HwEventKind::Remediation, fb::HwSource::Host);
      return true;
    default:
      return false;
  }
  d.reset();
  at.journal.add(d, fb::HwEventKind::DeviceReset, fb::HwSource::Host);
  return true;
}

}  // namespace infernex::monitor
