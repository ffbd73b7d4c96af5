#include "actors/simulator/replay_plot.hpp"

#include <algorithm>
#include <array>
#include <cmath>
#include <cstdio>

namespace infernex::simulator {

namespace {

// The drawing, in pixels.
constexpr double width = 920, height = 480;
constexpr double left = 80, right = 640, top = 40, bottom = 420;
constexpr double legend_x = 660, legend_step = 20;

// Okabe and Ito's colours (2008), which colour-blind people tell apart.
constexpr std::array colours{"#0072B2", "#D55E00", "#009E73", "#CC79A7", "#E69F00", "#56B4E9", "#000000", "#A6761D"};

struct point {
  double load, p50, p99;
};

struct series {
  std::string policy;
  std::vector<point> points;
};

std::string number(double value) {
  char text[32];
  const auto length = std::snprintf(text, sizeof text, "%g", value);
  return {text, static_cast<std::size_t>(length)};
}

std::string at(double value) {
  char text[32];
  const auto length = std::snprintf(text, sizeof text, "%.1f", value);
  return {text, static_cast<std::size_t>(length)};
}

std::string escaped(std::string_view text) {
  std::string safe;
  for (const char c : text) {
    if (c == '&')
      safe += "&amp;";
    else if (c == '<')
      safe += "&lt;";
    else if (c == '>')
      safe += "&gt;";
    else if (c == '"')
      safe += "&quot;";
    else
      safe += static_cast<unsigned char>(c) < 0x20 ? ' ' : c;
  }
  return safe;
}

std::string line(double x1, double y1, double x2, double y2, std::string_view style) {
  return "<line x1=\"" + at(x1) + "\" y1=\"" + at(y1) + "\" x2=\"" + at(x2) + "\" y2=\"" + at(y2) + "\" " +
         std::string(style) + "/>\n";
}

std::string label(double x, double y, std::string_view text, std::string_view style = "") {
  return "<text x=\"" + at(x) + "\" y=\"" + at(y) + "\" " + std::string(style) + ">" + escaped(text) + "</text>\n";
}

std::vector<series> series_of(const replay_report& report, bool relative) {
  std::vector<series> all;
  for (const auto& row : report.rows) {
    if (!row.seen.ttft) continue;
    auto found = std::find_if(all.begin(), all.end(), [&](const series& one) { return one.policy == row.policy; });
    if (found == all.end()) found = all.insert(all.end(), {row.policy, {}});
    const auto load = relative ? *row.load * 100 : row.offered_per_second;
    // A logarithm needs something; a microsecond is as good as nothing.
    found->points.push_back({load, std::max(row.seen.ttft->p50, 1e-3), std::max(row.seen.ttft->p99, 1e-3)});
  }
  for (auto& one : all)
    std::sort(one.points.begin(), one.points.end(), [](const point& a, const point& b) { return a.load < b.load; });
  return all;
}

/// Where values lie on the drawing.
struct scales {
  std::vector<double> x_ticks, y_ticks;

  double x(double load) const {
    return left + (right - left) * (load - x_ticks.front()) / (x_ticks.back() - x_ticks.front());
  }
  double y(double ms) const {
    const auto low = std::log10(y_ticks.front());
    return bottom - (bottom - top) * (std::log10(ms) - low) / (std::log10(y_ticks.back()) - low);
  }
};

scales scales_of(const std::vector<series>& all) {
  double least_load = 1e300, most_load = 0, least = 1e300, most = 0;
  for (const auto& one : all) {
    for (const auto& p : one.points) {
      least_load = std::min(least_load, p.load);
      most_load = std::max(most_load, p.load);
      least = std::min({least, p.p50, p.p99});
      most = std::max({most, p.p50, p.p99});
    }
  }
  // One load alone stands in the middle of an axis.
  const auto margin = most_load > least_load ? 0 : std::max(least_load / 2, 0.5);
  return {linear_ticks(least_load - margin, most_load + margin, 6), decade_ticks(least, most * 1.0001)};
}

std::string axes(const scales& scale, bool relative) {
  std::string svg;
  for (const auto load : scale.x_ticks) {
    svg += line(scale.x(load), bottom, scale.x(load), bottom + 5, "class=\"axis\"");
    svg += label(scale.x(load), bottom + 20, number(load), "text-anchor=\"middle\"");
  }
  for (const auto ms : scale.y_ticks) {
    svg += line(left, scale.y(ms), right, scale.y(ms), "class=\"grid\"");
    svg += label(left - 8, scale.y(ms) + 4, number(ms), "text-anchor=\"end\"");
  }
  svg += line(left, bottom, right, bottom, "class=\"axis\"") + line(left, top, left, bottom, "class=\"axis\"");
  svg += label((left + right) / 2, bottom + 42, relative ? "load, % of full load" : "load, requests/s",
               "text-anchor=\"middle\"");
  svg += label(20, (top + bottom) / 2, "TTFT, ms",
               "text-anchor=\"middle\" transform=\"rotate(-90 20 " + at((top + bottom) / 2) + ")\"");
  return svg;
}

std::string curve(const scales& scale, const series& one, double point::*value, std::string_view colour, bool dashed) {
  std::string corners, dots;
  for (const auto& p : one.points) {
    corners += at(scale.x(p.load)) + ',' + at(scale.y(p.*value)) + ' ';
    dots += "<circle cx=\"" + at(scale.x(p.load)) + "\" cy=\"" + at(scale.y(p.*value)) + "\" r=\"3\" fill=\"" +
            std::string(colour) + "\"/>\n";
  }
  corners.pop_back();
  return "<polyline fill=\"none\" stroke-width=\"2\" stroke=\"" + std::string(colour) + "\"" +
         (dashed ? " stroke-dasharray=\"6 4\"" : "") + " points=\"" + corners + "\"/>\n" + dots;
}

}  // namespace

std::vector<double> linear_ticks(double from, double to, int wanted) {
  if (from >= to) return {from, from + 1};
  const auto rough = (to - from) / wanted;
  const auto power = std::pow(10.0, std::floor(std::log10(rough)));
  const auto step = rough <= power       ? power
                    : rough <= 2 * power ? 2 * power
                    : rough <= 5 * power ? 5 * power
                                         : 10 * power;
  std::vector<double> ticks;
  // Counted, for sums of fractions drift; the small share keeps a bound that is a tick from making one more.
  const auto first = std::floor(from / step + 1e-9), last = std::ceil(to / step - 1e-9);
  for (auto i = first; i <= last; ++i) ticks.push_back(i * step);
  return ticks;
}

std::vector<double> decade_ticks(double from, double to) {
  std::vector<double> ticks;
  for (auto exponent = static_cast<int>(std::floor(std::log10(from)));; ++exponent) {
    for (const auto factor : {1.0, 2.0, 5.0}) {
      const auto tick = factor * std::pow(10.0, exponent);
      if (tick <= from) ticks.clear();
      ticks.push_back(tick);
      if (tick >= to && ticks.size() > 1) return ticks;
    }
  }
}

std::string plot_svg(const replay_report& report) {
  const auto relative =
      std::all_of(report.rows.begin(), report.rows.end(), [](const replay_row& row) { return row.load.has_value(); });
  const auto all = series_of(report, relative);
  const auto drawn_height = std::max(height, top + legend_step * (static_cast<double>(all.size()) + 4));
  std::string svg = "<svg xmlns=\"http://www.w3.org/2000/svg\" width=\"" + number(width) + "\" height=\"" +
                    number(drawn_height) + "\" font-family=\"sans-serif\" font-size=\"12\">\n" +
                    "<style>.axis{stroke:#333}.grid{stroke:#ddd}</style>\n" +
                    "<rect width=\"100%\" height=\"100%\" fill=\"white\"/>\n";
  svg += label(left, 20, report.trace + ", " + report.fleet, "font-weight=\"bold\"");
  if (all.empty()) return svg + label(left, top + 20, "no request had a first token") + "</svg>\n";
  const auto scale = scales_of(all);
  svg += axes(scale, relative);
  auto y = top;
  for (std::size_t i = 0; i < all.size(); ++i, y += legend_step) {
    const auto colour = colours[i % colours.size()];
    svg += curve(scale, all[i], &point::p50, colour, false) + curve(scale, all[i], &point::p99, colour, true);
    svg += line(legend_x, y, legend_x + 25, y, "stroke-width=\"3\" stroke=\"" + std::string(colour) + "\"");
    svg += label(legend_x + 32, y + 4, all[i].policy);
  }
  y += legend_step / 2;
  svg += line(legend_x, y, legend_x + 25, y, "stroke=\"#333\" stroke-width=\"2\"") + label(legend_x + 32, y + 4, "p50");
  y += legend_step;
  svg += line(legend_x, y, legend_x + 25, y, "stroke=\"#333\" stroke-width=\"2\" stroke-dasharray=\"6 4\"") +
         label(legend_x + 32, y + 4, "p99");
  return svg + "</svg>\n";
}

}  // namespace infernex::simulator
