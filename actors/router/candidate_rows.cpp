#include "actors/router/candidate_rows.hpp"

#include <algorithm>
#include <cmath>

namespace infernex::router {

void fill_unmeasured(std::span<double> scores) {
  constexpr double neutral = 0.5;
  double sum = 0;
  std::size_t measured = 0;
  for (const auto s : scores)
    if (!std::isnan(s)) {
      sum += s;
      ++measured;
    }
  if (measured == scores.size()) return;
  const double mean = measured == 0 ? neutral : sum / static_cast<double>(measured);
  for (auto& s : scores)
    if (std::isnan(s)) s = mean;
}

double made_worse(double total, double factor, bool is_cost) {
  return is_cost == (total > 0) ? total / factor : total * factor;
}

void fill_overlaps(std::vector<candidate>& rows, const overlaps& cached, std::uint32_t blocks, row_finder& by_name) {
  const auto known = cached.known ? cached.found : std::span<const overlap>{};
  if (known.empty() && cached.predicted.empty()) return;
  const auto name_of = [&](std::size_t i) -> std::string_view { return rows[i].to->instance; };
  by_name.fill(rows.size(), name_of);
  const auto row_of = [&](const overlap& o) {
    const auto i = by_name.find(o.instance, name_of);
    return i == row_finder::none ? nullptr : &rows[i];
  };
  for (const auto& o : known) {
    auto* c = row_of(o);
    if (!c) continue;
    c->held_blocks = std::min(o.blocks, blocks);
    c->host_blocks = std::min(o.host_blocks, c->held_blocks);
    c->device_blocks = std::min(o.device_blocks, c->host_blocks);
  }
  for (const auto& o : cached.predicted)
    if (auto* c = row_of(o)) c->predicted_blocks = std::min(o.blocks, blocks);
}

}  // namespace infernex::router
