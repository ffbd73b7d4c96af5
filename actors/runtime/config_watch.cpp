#include "actors/runtime/config_watch.hpp"

#include "actors/runtime/log.hpp"

namespace infernex {

namespace {

prometheus::Counter& counter(metrics_registry& metrics, const std::string& part, const char* result) {
  return metrics.counter("infernex_" + part + "_config_reloads_total",
                         "Times that a changed configuration file was read, and taken or refused",
                         {{"result", result}});
}

void tell(const std::vector<std::string>& remarks) {
  for (const auto& one : remarks) log::info("configuration", {{"remark", one}});
}

}  // namespace

config_watch::config_watch(metrics_registry& metrics, settings how, std::function<outcome()> reload)
    : how_(std::move(how)),
      reload_(std::move(reload)),
      applied_(counter(metrics, how_.part, "applied")),
      refused_(counter(metrics, how_.part, "refused")),
      thread_([this](const std::stop_token& ending) { run(ending); }) {
  tell(how_.remarks);
}

config_watch::~config_watch() {
  thread_.request_stop();
  thread_.join();
}

void config_watch::run(const std::stop_token& ending) {
  std::unique_lock lock(guard_);
  while (!wake_.wait_for(lock, ending, how_.interval, [&ending] { return ending.stop_requested(); })) {
    // Taken before the file is read: what is written meanwhile is seen the next time.
    auto now = config::stamp_of(how_.file);
    if (now == how_.read) continue;
    how_.read = now;
    reload();
  }
}

void config_watch::reload() {
  const auto came = reload_();
  for (const auto& one : came.problems) log::error("configuration refused", {{"problem", one}});
  tell(came.remarks);
  if (came.problems.empty()) {
    applied_.Increment();
    log::info("configuration read anew", {{"file", how_.file}});
  } else {
    refused_.Increment();
    log::error("the configuration in use is kept", {{"file", how_.file}});
  }
}

}  // namespace infernex
