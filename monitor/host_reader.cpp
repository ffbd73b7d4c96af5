#include "monitor/host_reader.hpp"

#include <fstream>
#include <iterator>

#include "monitor/host_parse.hpp"

namespace infernex::monitor {

namespace {

std::string read_small_file(const char* path) {
  constexpr std::streamsize most = 1 << 20;
  std::ifstream file(path, std::ios::binary);
  std::string text(64 << 10, '\0');
  std::string all;
  while (file && static_cast<std::streamsize>(all.size()) < most) {
    file.read(text.data(), static_cast<std::streamsize>(text.size()));
    all.append(text.data(), static_cast<std::size_t>(file.gcount()));
  }
  return all;
}

class host_reader final : public reader {
 public:
  fb::HwSource kind() const override { return fb::HwSource::Host; }
  std::string name() const override { return "host"; }
  reading_round read() override {
    reading_round found;
    const auto stat = read_small_file("/proc/stat");
    const auto ticks = parse_proc_stat(stat);
    if (ticks && before_) found.node.set(metric::NodeCpuUtilization, cpu_utilization(*before_, *ticks));
    if (ticks) before_ = ticks;
    found.node.set(metric::NodeLoad1, parse_loadavg(read_small_file("/proc/loadavg")));
    parse_meminfo(read_small_file("/proc/meminfo"), found.node);
    found.node.set(metric::NodeBlockedProcesses, parse_blocked_processes(stat));
    return found;
  }

 private:
  std::optional<cpu_ticks> before_;
};

}  // namespace

std::shared_ptr<reader> make_host_reader() { return std::make_shared<host_reader>(); }

std::vector<std::shared_ptr<reader>> readers_of_node(const settings&) {
  return {make_host_reader(), make_kernel_log_reader("/dev/kmsg")};
}

}  // namespace infernex::monitor
