#pragma once

#include <cstdint>
#include <map>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "actors/router/parameters.hpp"
#include "actors/router/plugin.hpp"

namespace infernex::router::plugins {

/// The engines of each model on a ring of hashes, each at several points, so that one more or less moves only its own
/// share of the keys. A model's ring holds all its engines, also those that may not take the request at hand, and is
/// made anew only when they are others. Of the models asked for, at most `max_models` keep theirs.
class engine_rings {
 public:
  static constexpr std::size_t max_models = 64;
  /// Reads `virtualNodes`.
  explicit engine_rings(parameters& p);

  static std::uint64_t hash_of(std::string_view text);
  static std::uint64_t hash_of(std::uint64_t key);

  /// Candidates (of this model's endpoints) as met going round from `hash`, at most `keep`, into `order` (given empty).
  void rank(const model_endpoints& model, std::span<const candidate> all, std::uint64_t hash, std::size_t keep,
            std::vector<std::uint32_t>& order);
  /// How often a ring was made.
  std::uint64_t rebuilt() const { return rebuilt_; }

 private:
  struct point {
    std::uint64_t at;
    std::uint32_t engine;  // number among the model's endpoints
  };
  struct ring {
    std::vector<std::string> engines;
    std::vector<point> points;  // by `at`
  };
  const ring& of(const model_endpoints& model);
  void make(ring& into, const model_endpoints& model);

  std::uint32_t points_ = 150;
  std::map<std::string, ring, std::less<>> rings_;
  std::uint64_t rebuilt_ = 0;
  std::vector<std::uint32_t> candidate_of_;  // by endpoint; of the decision at hand
};

}  // namespace infernex::router::plugins
