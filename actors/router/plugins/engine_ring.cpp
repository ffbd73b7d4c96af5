#include "actors/router/plugins/engine_ring.hpp"

#include <algorithm>

#include <xxhash.h>

namespace infernex::router::plugins {

namespace {
constexpr std::uint32_t none = 0xffffffff;
}

engine_rings::engine_rings(parameters& p) {
  p.read("virtualNodes", points_, 1, 10'000, "points of an engine on the ring");
}

std::uint64_t engine_rings::hash_of(std::string_view text) { return XXH3_64bits(text.data(), text.size()); }
std::uint64_t engine_rings::hash_of(std::uint64_t key) { return XXH3_64bits(&key, sizeof key); }

const engine_rings::ring& engine_rings::of(const model_endpoints& model) {
  auto it = rings_.find(model.model);
  if (it == rings_.end()) {
    if (rings_.size() == max_models) rings_.clear();
    it = rings_.try_emplace(model.model).first;
  }
  auto& found = it->second;
  // By name: a snapshot's address may come again with other engines.
  const bool same =
      std::equal(found.engines.begin(), found.engines.end(), model.endpoints.begin(), model.endpoints.end(),
                 [](const std::string& name, const endpoint& e) { return name == e.instance; });
  if (!same) make(found, model);
  return found;
}

void engine_rings::make(ring& into, const model_endpoints& model) {
  ++rebuilt_;
  into.engines.clear();
  into.points.clear();
  into.points.reserve(model.endpoints.size() * points_);
  std::string name;
  for (std::uint32_t engine = 0; engine < model.endpoints.size(); ++engine) {
    into.engines.push_back(model.endpoints[engine].instance);
    for (std::uint32_t i = 0; i < points_; ++i) {
      name.assign(into.engines.back()).append("#").append(std::to_string(i));
      into.points.push_back({hash_of(name), engine});
    }
  }
  std::sort(into.points.begin(), into.points.end(),
            [](const point& a, const point& b) { return a.at != b.at ? a.at < b.at : a.engine < b.engine; });
}

void engine_rings::rank(const model_endpoints& model, std::span<const candidate> all, std::uint64_t hash,
                        std::size_t keep, std::vector<std::uint32_t>& order) {
  const auto& points = of(model).points;
  candidate_of_.assign(model.endpoints.size(), none);
  for (std::uint32_t i = 0; i < all.size(); ++i)
    candidate_of_[static_cast<std::size_t>(all[i].to - model.endpoints.data())] = i;
  auto at = std::lower_bound(points.begin(), points.end(), hash,
                             [](const point& p, std::uint64_t wanted) { return p.at < wanted; });
  const auto wanted = std::min(keep, all.size());
  for (std::size_t n = 0; n < points.size() && order.size() < wanted; ++n) {
    if (at == points.end()) at = points.begin();
    auto& met = candidate_of_[at->engine];
    if (met != none) order.push_back(met);
    met = none;
    ++at;
  }
}

}  // namespace infernex::router::plugins
