#pragma once

// What a scheduling plugin is. A decision goes: rows of candidates are made from topology, loads and overlaps; the
// profile handler runs one profile or more; a profile drops rows by its filters, adds up weight * score of its
// scorers, and its picker ranks what is left.

#include <cstdint>
#include <limits>
#include <memory>
#include <optional>
#include <random>
#include <span>
#include <string_view>
#include <vector>

#include "actors/router/load_board.hpp"
#include "actors/router/placement.hpp"
#include "actors/router/topology.hpp"

namespace infernex::router {

/// One engine that might take the request, with all that is known of it.
struct candidate {
  const endpoint* to = nullptr;
  load_reading load;
  /// Leading blocks of the prompt it caches by the index: on any tier, of those on the device, and on device or host.
  std::uint32_t held_blocks = 0;
  std::uint32_t device_blocks = 0;
  std::uint32_t host_blocks = 0;
  /// Leading blocks it should cache by what was routed to it lately.
  std::uint32_t predicted_blocks = 0;

  /// Blocks that need no prefill, as far as known.
  std::uint32_t expected_blocks() const { return held_blocks > predicted_blocks ? held_blocks : predicted_blocks; }
};

using random_source = std::mt19937_64;

/// The engine that answers, or the one that computes the prompt for it.
enum class serving_leg : std::uint8_t { decode, prefill };

/// What each PD group's best prefill engine would cost a prompt, while who decodes is chosen among all groups.
class prefill_offers {
 public:
  virtual ~prefill_offers() = default;
  struct offer {
    /// Good until the prefill leg is run again.
    const candidate* by = nullptr;
    double cost = 0;
  };
  /// Null: no prefill engine of this group is left.
  virtual const offer* find(std::string_view group) const = 0;
};

/// What a decode engine was weighed at: with a prefill engine of its group, and computing the prompt itself (infinite:
/// it cannot). In the unit of its profile's totals.
struct pair_weights {
  const endpoint* prefill = nullptr;
  double as_pair = 0;
  double alone = 0;
};

/// What a decision is made for, and when.
struct decision_context {
  const placement& request;
  const model_endpoints& model;
  clock_point now;
  /// Whether the KV index answered; if not, held blocks are unknown, not zero.
  bool index_known;
  /// Grows by one a decision for this model: what takes turns goes by it.
  std::uint64_t turn;
  random_source& random;
  /// What is chosen at this moment, and who is the other leg's choice so far; null: none yet.
  serving_leg leg = serving_leg::decode;
  const candidate* partner = nullptr;
  /// Of the decision: no two are equal.
  std::uint64_t number = 0;
  /// Null: nobody compares pairs.
  const prefill_offers* offers = nullptr;
};

/// A request header that a plugin looks at, by its name in lower case.
struct header_use {
  std::string_view name;
  /// Its value is the name of the engine that answered the session's last request, in base64: the gateway writes it
  /// into its answers.
  bool names_engine = false;
};

/// A plugin belongs to one scheduler, hence to one thread; it may keep state of its own, of bounded size.
class plugin {
 public:
  virtual ~plugin() = default;
  /// The request went to this candidate by a profile this plugin is part of.
  virtual void routed(const decision_context&, const candidate&) {}
  /// Looks at cached blocks, so that the index has to be asked.
  virtual bool uses_cache() const { return false; }
  /// Those its parameters name, which the gateway may not know of otherwise.
  virtual void add_headers(std::vector<header_use>&) const {}
  /// Once all plugins of a configuration are made: each is shown every other, in the order of the configuration.
  virtual void meet(const plugin&) {}
};

class filter : public plugin {
 public:
  /// Removes the candidates that do not fit, keeping the order of the others (std::erase_if).
  virtual void apply(const decision_context& context, std::vector<candidate>& kept) = 0;
  /// Chooses by role itself; without such a filter a profile takes aggregated engines only.
  virtual bool by_role() const { return false; }
  /// Keeps all of them, for sure: asked first, so that they need not be copied.
  virtual bool keeps_all(const decision_context&, std::span<const candidate>) { return false; }
};

/// A score that could not be measured: the scheduler gives it the mean of the others (0.5 if none was measured).
inline constexpr double not_measured = std::numeric_limits<double>::quiet_NaN();

class disaggregation_decider;

class scorer : public plugin {
 public:
  /// One score a candidate into `out`: 0..1, higher is better, unless the formula says otherwise (costs go with a
  /// picker that takes the least).
  virtual void score(const decision_context& context, std::span<const candidate> all, std::span<double> out) = 0;
  /// The part of it that drops candidates, among the filters of its profile; null: it only scores.
  virtual filter* filters() { return nullptr; }
  /// The part of it that knows whether a pair costs less than one engine, for a profile handler; null: there is none.
  virtual disaggregation_decider* decides() { return nullptr; }
};

class picker : public plugin {
 public:
  /// Ranks: indices of at most `keep` candidates into `order` (given empty), best first. `totals` has one value each.
  virtual void pick(const decision_context& context, std::span<const candidate> all, std::span<const double> totals,
                    std::size_t keep, std::vector<std::uint32_t>& order) = 0;
  /// Totals are costs to it.
  virtual bool takes_least() const { return false; }
  /// Goes by turns, which is then the reason given.
  virtual bool in_turn() const { return false; }
};

/// Makes data for other plugins in the systems it comes from. Here the router has that data anyway, so it does
/// nothing: it lets their files load as they are.
class producer : public plugin {};

/// Whether a request is worth disaggregating, given the decode engine it would go to.
class disaggregation_decider : public plugin {
 public:
  virtual bool disaggregate(const decision_context& context, const candidate& decode) = 0;
  /// What it compared, where it compares costs and there is an offer for this engine.
  virtual std::optional<pair_weights> weigh(const decision_context&, const candidate&) const { return std::nullopt; }
};

/// Runs profiles for a profile handler. Results stay in the decision.
class profile_runner {
 public:
  virtual ~profile_runner() = default;
  using leg = serving_leg;
  /// Runs the profile of that name for this leg; it stays in `group` unless that is empty, and takes only the engine at
  /// `address` (`host:port`) unless that is. False: nobody is left. The best one is `best(which)`.
  virtual bool run(std::string_view profile, leg which, std::string_view group = {}, std::string_view address = {}) = 0;
  virtual const candidate* best(leg which) const = 0;
  /// Takes a leg's result back, for a choice that came out otherwise.
  virtual void drop(leg which) = 0;
  /// Those that the latest run ranked, and the total of each; good until the next run of any leg (the candidates: of
  /// the same leg).
  virtual std::span<const candidate> considered() const = 0;
  virtual std::span<const double> totals() const = 0;
  /// What later runs see as their context's offers; null: none.
  virtual void offer(const prefill_offers* from) = 0;
  /// For the reason.
  virtual void weighed(const pair_weights& what) = 0;
};

class profile_handler : public plugin {
 public:
  virtual void handle(const decision_context& context, profile_runner& profiles) = 0;
  /// Its decode leg may take decode engines besides aggregated ones, and a prefill leg may follow.
  virtual bool disaggregates() const { return false; }
  /// What the parameters named is looked up once all plugins are made; false: there is none of that name.
  virtual std::string_view decider_name() const { return {}; }
  virtual void use(disaggregation_decider&) {}
  /// Profiles it will run, so that a name that does not exist is refused at once. None: the only one.
  virtual std::vector<std::string_view> profiles() const { return {}; }
  /// All profiles there are.
  virtual void know_profiles(std::vector<std::string_view>) {}
};

/// Ranks by total, highest (or lowest) first; equal totals in the order of the turn, which goes round.
void rank_by_total(const decision_context& context, std::span<const double> totals, std::size_t keep, bool lowest_first,
                   std::vector<std::uint32_t>& order);

}  // namespace infernex::router
