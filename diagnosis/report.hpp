#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "diagnosis/book.hpp"

namespace infernex::diagnosis {

/// The state of a fleet at one moment, for people and programs.
struct fleet_report {
  /// Nanoseconds since 1970.
  std::uint64_t at = 0;
  std::string knowledge;
  std::size_t nodes = 0;
  std::size_t devices = 0;
  std::vector<verdict_ref> standing;
  /// Newest first.
  std::vector<verdict_ref> past;
};

/// What an engine says now; `node`: of this one only, if not empty. At most 200 past verdicts.
class engine;
fleet_report make_report(const engine& from, std::uint64_t at, const std::string& node = {});

/// One JSON object: `{"at":…,"knowledge":…,"summary":{…},"verdicts":[…],"past":[…]}`.
std::string report_json(const fleet_report& of);

/// A page that needs nothing but itself: no script, charts as SVG, fit for paper.
std::string report_html(const fleet_report& of);

/// For a terminal.
std::string report_text(const fleet_report& of);

/// One line of a change: `2026-11-22T10:00:00Z raised critical/isolate sim-0/3 card-drop: The card has dropped off`.
std::string change_line(const verdict& what);

// Shared by the three.
/// `2026-11-22T10:00:00Z`; empty for 0.
std::string render_time(std::uint64_t ns);
/// `3 h 20 min`.
std::string render_age(std::uint64_t from_ns, std::uint64_t to_ns);
std::string place_of(const verdict& what);

}  // namespace infernex::diagnosis
