#pragma once

#include <array>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <unordered_map>
#include <vector>

#include "diagnosis/anomaly.hpp"
#include "diagnosis/book.hpp"
#include "diagnosis/patient.hpp"
#include "diagnosis/trace.hpp"

namespace infernex::diagnosis {

struct engine_limits {
  std::uint32_t max_nodes = 8'192;
  std::uint32_t max_devices = 65'536;
  std::uint32_t max_devices_of_node = 256;
  /// A node that is silent for so long is no longer part of the fleet; its verdicts are cleared.
  millis forget = 24 * 3'600'000LL;
};

/// The diagnosis: samples, events and inventories in, verdicts out. Time is passed in and never goes back. Everything
/// is bounded: what comes over the bounds is counted.
class engine {
 public:
  struct counters {
    std::uint64_t samples = 0;
    std::uint64_t device_samples = 0;
    std::uint64_t events = 0;
    std::uint64_t refused = 0;
  };

  explicit engine(std::shared_ptr<const knowledge> base, engine_limits limits = {});
  engine(engine&&) noexcept;
  ~engine();

  void on_sample(const monitor::node_sample& sample, millis now);
  void on_event(const fb::HwEventT& event, millis now);
  void on_inventory(const fb::HwInventoryT& inventory, millis now);
  /// Once a second. `heard`: the bus is there, so that silence means something.
  void on_tick(millis now, bool heard = true);
  /// Other rules from now on: what stands is cleared, and raised again if it is still so.
  void reload(std::shared_ptr<const knowledge> base, millis now);

  /// What changed since the last call, oldest first; at most 65,536.
  std::vector<verdict_ref> take_changes();
  const verdict_book& book() const { return book_; }
  standing at(const std::string& of_node, std::optional<std::uint32_t> index) const { return book_.at(of_node, index); }
  const knowledge& known() const { return *base_; }
  const counters& counts() const { return counts_; }
  std::size_t nodes() const { return nodes_.size(); }
  std::size_t devices() const { return devices_; }
  /// Memory of all devices' states, verdicts apart.
  std::size_t bytes() const;

 private:
  struct device;
  struct node;
  node* find_or_add(const std::string& name, millis now);
  device* find_or_add(node& of, std::uint32_t index, fb::HwVendor vendor);
  void on_device(node& of, const monitor::device_sample& sample, millis now);
  void end_window(node& of, millis now);
  void tick(node& of, bool judged, millis now);
  void publish(node& of, device* who, patient& from);
  void put(node& of, device* who, patient& from, const condition_change& change);
  verdict describe(node& of, device* who, const patient& from, const condition_change& change) const;
  const plan& plan_of(fb::HwVendor vendor) const;
  void make_plans();

  std::shared_ptr<const knowledge> base_;
  engine_limits limits_;
  std::vector<std::unique_ptr<plan>> plans_;  // by vendor; the last is the nodes'
  std::unordered_map<std::string, std::unique_ptr<node>> nodes_;
  std::size_t devices_ = 0;
  verdict_book book_;
  std::vector<verdict_ref> changes_;
  counters counts_;
};

}  // namespace infernex::diagnosis
