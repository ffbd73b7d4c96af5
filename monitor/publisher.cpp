#include "monitor/publisher.hpp"

#include "actors/runtime/bus.hpp"
#include "actors/runtime/log.hpp"
#include "actors/runtime/metrics.hpp"
#include "messages/decode.hpp"
#include "monitor/exporter_page.hpp"

namespace infernex::monitor {

publisher::publisher(const runtime& process, const settings& how, std::optional<recorder> record,
                     std::shared_ptr<exporter_pages> pages)
    : process_(process),
      how_(how),
      record_(std::move(record)),
      pages_(std::move(pages)),
      samples_(process.metrics.counter("infernex_monitor_samples_total", "Samples of devices published")),
      events_(process.metrics.counter("infernex_monitor_events_total", "Events of devices published")),
      unsent_(process.metrics.counter("infernex_monitor_unsent_total", "Messages that the bus did not take")),
      unrecorded_(process.metrics.counter("infernex_monitor_unrecorded_total", "Messages that a recording lacks")),
      devices_(process.metrics.gauge("infernex_monitor_devices", "Devices in the latest samples")) {}

std::unique_ptr<fb::OriginT> publisher::origin_of(const std::string& node, std::uint64_t sequence) const {
  auto origin = std::make_unique<fb::OriginT>();
  origin->id = "monitor/" + node;
  origin->epoch = process_.epoch;
  origin->sequence = sequence;
  return origin;
}

template <class T>
void publisher::send(const subject<T>& to, const flatbuffers::DetachedBuffer& message, bool at_once,
                     std::uint64_t wall_ns) {
  if (process_.messages.publish(to, message, at_once ? lane::rpc : lane::stream) != errc::none) unsent_.Increment();
  if (record_ && record_->write(wall_ns, bytes_of(message)).code != errc::none) {
    unrecorded_.Increment();
    static log::limiter full;
    if (full.admit()) log::warn("the recording takes no more", {{"file", how_.record}});
  }
  if (!how_.mirror) return;
  if (const auto json = decode_to_json(bytes_of(message)))
    process_.messages.publish_bytes(how_.mirror_subject, "application/json",
                                    {reinterpret_cast<const std::uint8_t*>(json->data()), json->size()}, lane::stream);
}

void publisher::publish(node_report&& report, std::uint64_t wall_ns) {
  const auto& names = process_.messages.names();
  auto& of_node = nodes_[report.node];
  if (report.inventory) {
    report.inventory->origin = origin_of(report.node, ++of_node.inventories);
    send(names.hw_inventory(report.node), encode(*report.inventory), true, wall_ns);
    of_node.inventory = std::move(report.inventory);
  }
  for (auto& event : report.events) {
    event.origin = origin_of(report.node, ++of_node.events);
    send(names.hw_event(report.node), encode(event), true, wall_ns);
    events_.Increment();
  }
  if (!report.sample) return;
  stamped_ = *report.sample;
  stamped_.source = "monitor/" + report.node;
  stamped_.epoch = process_.epoch;
  stamped_.sequence = ++of_node.samples;
  send(names.hw_sample(report.node), pack(stamped_), false, wall_ns);
  samples_.Increment(static_cast<double>(stamped_.devices.size()));
  auto& before = devices_of_[report.node];
  devices_now_ += stamped_.devices.size() - before;
  before = stamped_.devices.size();
  devices_.Set(static_cast<double>(devices_now_));
  if (nodes_.size() <= how_.page_nodes)
    pages_->set(report.node, render_exporter_page(stamped_, of_node.inventory ? &*of_node.inventory : nullptr));
}

}  // namespace infernex::monitor
