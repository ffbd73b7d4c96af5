#pragma once

#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <string>

#include "actors/runtime/role.hpp"
#include "monitor/recording.hpp"
#include "monitor/settings.hpp"
#include "monitor/source.hpp"

namespace prometheus {
class Counter;
class Gauge;
}  // namespace prometheus

namespace infernex::monitor {

/// The latest page of metrics under other exporters' names, for the threads that serve it.
class exporter_pages {
 public:
  void set(const std::string& node, std::string page) {
    const std::lock_guard lock(guard_);
    pages_[node] = std::move(page);
  }
  std::string all() const {
    const std::lock_guard lock(guard_);
    std::string out;
    for (const auto& [node, page] : pages_) out += page;
    return out;
  }

 private:
  mutable std::mutex guard_;
  std::map<std::string, std::string> pages_;
};

/// Says reports on the bus, and where else they are wanted: to a recording, as JSON, on the page of metrics. Sequences
/// are per node and kind of message. One thread.
class publisher {
 public:
  publisher(const runtime& process, const settings& how, std::optional<recorder> record,
            std::shared_ptr<exporter_pages> pages);
  void publish(node_report&& report, std::uint64_t wall_ns);

 private:
  struct sequences {
    std::uint64_t samples = 0;
    std::uint64_t events = 0;
    std::uint64_t inventories = 0;
    std::optional<hw_inventory> inventory;
  };
  template <class T>
  void send(const subject<T>& to, const flatbuffers::DetachedBuffer& message, bool at_once, std::uint64_t wall_ns);
  std::unique_ptr<fb::OriginT> origin_of(const std::string& node, std::uint64_t sequence) const;

  runtime process_;
  settings how_;
  std::optional<recorder> record_;
  std::shared_ptr<exporter_pages> pages_;
  std::map<std::string, sequences> nodes_;
  prometheus::Counter& samples_;
  prometheus::Counter& events_;
  prometheus::Counter& unsent_;
  prometheus::Counter& unrecorded_;
  prometheus::Gauge& devices_;
  std::map<std::string, std::size_t> devices_of_;
  std::size_t devices_now_ = 0;
  node_sample stamped_;
};

}  // namespace infernex::monitor
