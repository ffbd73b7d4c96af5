#pragma once

#include <array>
#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "actors/router/parameters.hpp"
#include "actors/router/plugin.hpp"
#include "messages/result.hpp"

namespace infernex::router {

/// How requests are placed, as configured: the plugins, and the profiles that use them.
struct scheduler_spec {
  struct plugin {
    std::string name;  // empty: the type's
    std::string type;
    boost::json::object parameters;
  };
  struct use {
    std::string plugin;  // its name
    double weight = 1.0;
  };
  struct profile {
    std::string name = "default";
    std::vector<use> plugins;
  };
  /// For people: `kv-aware`, or the file it was read from.
  std::string name;
  std::vector<plugin> plugins;
  std::vector<profile> profiles;
  /// Runners-up kept for retry, the chosen one not counted.
  std::uint32_t runners_up = 3;
};

/// Engines of a model that cannot take a request, counted by the first filter they failed.
struct left_out {
  std::array<std::uint32_t, 5> by_state{};  // by fb::EngineState; Ready stays 0
  /// By verdicts on their accelerators.
  std::uint32_t isolated = 0;
  std::uint32_t other_role = 0;
  std::uint32_t without_adapter = 0;
  std::uint32_t excluded = 0;
  /// Those that a profile's filters dropped.
  std::uint32_t filtered = 0;
};

/// An engine that may take the request.
struct scored {
  const endpoint* to = nullptr;
  double total = 0;
  /// Prompt blocks by the index: on any tier, of those on the device, and on device or host.
  std::uint32_t overlap_blocks = 0;
  std::uint32_t device_blocks = 0;
  std::uint32_t host_blocks = 0;
  std::uint32_t predicted_blocks = 0;
  /// More is predicted than the index knows of.
  bool by_prediction = false;

  /// Blocks that need no prefill, as far as known.
  std::uint32_t expected_blocks() const {
    return overlap_blocks > predicted_blocks ? overlap_blocks : predicted_blocks;
  }
};

/// What came of one profile.
struct ranking {
  /// Best first.
  std::vector<scored> ranked;
  /// Names and weights of the profile's scorers; scores: a row of as many for each of `ranked`.
  struct used_scorer {
    std::string_view name;
    double weight;
  };
  std::vector<used_scorer> scorers;
  std::vector<double> scores;
  std::size_t candidates = 0;

  std::span<const double> scores_of(std::size_t i) const {
    return std::span(scores).subspan(i * scorers.size(), scorers.size());
  }
};

/// An engine that was not ranked, and why: a filter's name, or what it is.
struct dropped {
  const endpoint* to;
  std::string_view by;
};

/// Where a request goes. Points into the topology it was decided on and into the scheduler; good until the
/// scheduler decides again.
struct decision {
  /// The engines that may answer (aggregated or decode); none: nobody can take it, and `reason` says why.
  ranking serving;
  /// The engines that may prefill for the first of `serving`; none: it does so itself.
  ranking prefill;
  /// How the first of `serving` compared with and without a prefill engine, where costs were compared.
  std::optional<pair_weights> weighed;
  /// One line for people.
  std::string reason;
  bool index_used = false;
  /// The chosen engine's overlap is a prediction.
  bool by_prediction = false;
  /// Filled only when every candidate was asked for.
  std::vector<dropped> left_out_engines;

  /// The engine that computes the prompt; null: nobody can take it.
  const scored* prefills() const {
    if (!prefill.ranked.empty()) return &prefill.ranked.front();
    return serving.ranked.empty() ? nullptr : &serving.ranked.front();
  }
};

/// Decides by the plugins of one configuration. Not thread-safe: each thread has its own, since plugins keep state.
/// After warm-up a decision allocates nothing, unless a plugin has to remember something new (a session, a prompt seen
/// for the first time) or the fleet has changed.
class scheduler {
 public:
  /// Errors: every mistake of the configuration at once.
  static std::unique_ptr<scheduler> make(const scheduler_spec& spec, std::vector<spec_problem>& problems,
                                         std::uint64_t seed = 1);
  ~scheduler();

  /// With every candidate it is an explanation: plugins are not told that the request was routed, and turns stand
  /// still.
  enum class detail : std::uint8_t { brief, every_candidate };
  /// `model` may be null: unknown. `loads` is read at `now`. Reserves nothing: the caller does, for the choice it
  /// takes.
  const decision& decide(const placement& request, const model_endpoints* model, const load_board& loads,
                         const overlaps& cached, clock_point now, detail how_much = detail::brief);

  /// The index has to be asked, and predictions kept.
  bool uses_cache() const;
  /// Prefill and decode engines are among its candidates.
  bool disaggregates() const;
  const std::string& name() const;

 private:
  struct impl;
  explicit scheduler(std::unique_ptr<impl> state);
  std::unique_ptr<impl> impl_;
};

}  // namespace infernex::router
