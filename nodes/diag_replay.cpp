#include "nodes/diag_replay.hpp"

#include <iostream>

#include "diagnosis/feed.hpp"
#include "diagnosis/knowledge_base.hpp"
#include "monitor/recording.hpp"

namespace infernex::nodes {

result<diagnosis::fleet_report> replay_recording(const std::string& file,
                                                 const std::function<void(const diagnosis::verdict&)>& tell) {
  auto recording = monitor::recording_reader::open(file);
  if (!recording) return recording.failure();
  diagnosis::engine rules(diagnosis::load_knowledge("", "").base);
  monitor::recorded_message message;
  diagnosis::millis now = 0;
  diagnosis::millis next_tick = 0;
  std::uint64_t left_out = 0;
  const auto tell_changes = [&] {
    for (const auto& one : rules.take_changes()) tell(*one);
  };
  while (recording->next(message)) {
    now = std::max(now, static_cast<diagnosis::millis>(message.time_ns / 1'000'000));
    // Where nothing was recorded for long, the seconds between would all say the same.
    if (next_tick + 600'000 < now) next_tick = now;
    for (; next_tick <= now; next_tick += 1000) rules.on_tick(next_tick);
    left_out += diagnosis::feed(rules, message.bytes, now).code != errc::none;
    tell_changes();
  }
  rules.on_tick(now);
  tell_changes();
  if (left_out > 0) std::cerr << "infernex diag: " << left_out << " messages of other kinds left out\n";
  if (recording->cut_off()) std::cerr << "infernex diag: the recording breaks off in the middle of a message\n";
  return diagnosis::make_report(rules, static_cast<std::uint64_t>(now) * 1'000'000);
}

}  // namespace infernex::nodes
