#pragma once

// What every benchmark in C++ shares, in the form of report.py: a table for people, and
// FOLDER/NAME.json for machines, one object a row, keyed by the headers.

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <ctime>
#include <filesystem>
#include <fstream>
#include <iostream>
#include <string>
#include <thread>
#include <vector>

namespace infernex::bench {

/// The smallest value that at least `share` of the values do not exceed. Sorts in place.
inline double percentile(std::vector<double>& values, double share) {
  if (values.empty()) return 0;
  std::sort(values.begin(), values.end());
  const auto at = static_cast<std::size_t>(std::max(0.0, std::ceil(static_cast<double>(values.size()) * share) - 1));
  return values[std::min(at, values.size() - 1)];
}

class report {
 public:
  report(std::string name, std::vector<std::string> headers) : name_(std::move(name)), headers_(std::move(headers)) {}

  /// Cells in the order of the headers; numbers stay numbers in the JSON.
  template <class... Cells>
  void row(const Cells&... cells) {
    rows_.push_back({cell_of(cells)...});
  }

  /// A figure of its own beside the rows, e.g. `baseline.lookup_p50_us`: a dot makes an object.
  template <class Value>
  void fact(const std::string& name, const Value& value) {
    facts_.push_back({name, cell_of(value).json});
  }

  /// False if the file cannot be written.
  bool publish(const std::filesystem::path& folder) const {
    print();
    std::error_code failed;
    std::filesystem::create_directories(folder, failed);
    const auto file = folder / (name_ + ".json");
    std::ofstream out(file);
    out << "{\n  \"name\": \"" << name_ << "\",\n  \"machine\": \"" << machine() << "\",\n  \"command\": \"make bench-"
        << name_ << "\",\n  \"when\": \"" << now() << "\",\n";
    write_facts(out);
    out << "  \"rows\": [";
    for (std::size_t r = 0; r < rows_.size(); ++r) {
      out << (r == 0 ? "\n    {" : ",\n    {");
      for (std::size_t c = 0; c < headers_.size(); ++c)
        out << (c == 0 ? "" : ", ") << '"' << headers_[c] << "\": " << rows_[r][c].json;
      out << '}';
    }
    out << "\n  ]\n}\n";
    out.close();
    if (!out) {
      std::cerr << "cannot write " << file.string() << '\n';
      return false;
    }
    std::cout << "written to " << file.string() << " (" << machine() << ")\n";
    return true;
  }

 private:
  struct named {
    std::string name;
    std::string json;
  };
  /// Members of one object must have been named one after the other.
  void write_facts(std::ostream& out) const {
    std::string open;
    for (std::size_t i = 0; i < facts_.size(); ++i) {
      const auto dot = facts_[i].name.find('.');
      const auto object = dot == std::string::npos ? std::string() : facts_[i].name.substr(0, dot);
      if (object != open && !open.empty()) out << "},\n";
      if (object == open && !open.empty()) out << ", ";
      if (object != open && !object.empty()) out << "  \"" << object << "\": {";
      open = object;
      if (object.empty())
        out << "  \"" << facts_[i].name << "\": " << facts_[i].json << ",\n";
      else
        out << '"' << facts_[i].name.substr(dot + 1) << "\": " << facts_[i].json;
    }
    if (!open.empty()) out << "},\n";
  }

  struct cell {
    std::string shown;
    std::string json;
  };
  static cell cell_of(const std::string& text) { return {text, '"' + text + '"'}; }
  static cell cell_of(const char* text) { return cell_of(std::string(text)); }
  static cell cell_of(double value) {
    char shown[64];
    std::snprintf(shown, sizeof shown, "%.2f", value);
    char exact[64];
    std::snprintf(exact, sizeof exact, "%.6g", value);
    return {shown, exact};
  }
  template <class Integer>
  requires std::is_integral_v<Integer>
  static cell cell_of(Integer value) { return {std::to_string(value), std::to_string(value)}; }

  void print() const {
    std::vector<std::size_t> widths;
    for (std::size_t c = 0; c < headers_.size(); ++c) {
      widths.push_back(headers_[c].size());
      for (const auto& r : rows_) widths[c] = std::max(widths[c], r[c].shown.size());
    }
    const auto line = [&](auto text_of) {
      std::cout << '|';
      for (std::size_t c = 0; c < headers_.size(); ++c) {
        const std::string text = text_of(c);
        std::cout << ' ' << text << std::string(widths[c] - text.size(), ' ') << " |";
      }
      std::cout << '\n';
    };
    line([&](std::size_t c) { return headers_[c]; });
    std::cout << '|';
    for (const auto width : widths) std::cout << std::string(width + 2, '-') << '|';
    std::cout << '\n';
    for (const auto& r : rows_) line([&](std::size_t c) { return r[c].shown; });
  }

  static std::string machine() {
    std::string cpu = "unknown CPU";
    std::ifstream info("/proc/cpuinfo");
    for (std::string text; std::getline(info, text);)
      if (text.starts_with("model name")) {
        cpu = text.substr(text.find(':') + 2);
        break;
      }
    return cpu + ", " + std::to_string(std::thread::hardware_concurrency()) + " cores";
  }
  static std::string now() {
    const auto seconds = std::time(nullptr);
    std::tm utc{};
    gmtime_r(&seconds, &utc);
    char text[32];
    std::strftime(text, sizeof text, "%Y-%m-%dT%H:%M:%S+00:00", &utc);
    return text;
  }

  std::string name_;
  std::vector<std::string> headers_;
  std::vector<named> facts_;
  std::vector<std::vector<cell>> rows_;
};

/// Where reports go: the first argument, else build/bench.
inline std::filesystem::path report_folder(int argc, char** argv) { return argc > 1 ? argv[1] : "build/bench"; }

}  // namespace infernex::bench
