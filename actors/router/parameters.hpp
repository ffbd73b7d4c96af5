#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

#include <boost/json/object.hpp>

#include "actors/router/plugin.hpp"

namespace infernex::router {

/// A mistake in a scheduler's configuration. The path is that of the value: `plugins[2].parameters.alpha`.
struct spec_problem {
  std::string path;
  std::string message;
};

/// The parameters of one plugin, read by name into its settings, whose values are the defaults. Mistakes are
/// collected; when all is read, finish() refuses the names nobody asked for, each with the nearest known one.
class parameters {
 public:
  parameters(const boost::json::object& given, std::string path, std::vector<spec_problem>& problems)
      : given_(given), path_(std::move(path)), problems_(problems) {}

  /// What a plugin asked for: for lists of all parameters.
  struct described {
    std::string name;
    std::string default_value;
    std::string sentence;
  };

  parameters& read(std::string_view name, double& into, double min, double max, std::string_view sentence);
  parameters& read(std::string_view name, std::uint32_t& into, std::uint32_t min, std::uint32_t max,
                   std::string_view sentence);
  parameters& read(std::string_view name, std::uint64_t& into, std::uint64_t min, std::uint64_t max,
                   std::string_view sentence);
  parameters& read(std::string_view name, bool& into, std::string_view sentence);
  parameters& read(std::string_view name, std::string& into, std::string_view sentence);
  parameters& read(std::string_view name, std::vector<std::string>& into, std::string_view sentence);
  /// A mapping of any names to texts.
  parameters& read(std::string_view name, std::vector<std::pair<std::string, std::string>>& into,
                   std::string_view sentence);
  /// One of `words`; `into` is its index.
  parameters& read_choice(std::string_view name, std::size_t& into, const std::vector<std::string_view>& words,
                          std::string_view sentence);
  /// A mapping (absent: empty) or sequence of mappings below, read by `use`, which is called once for each.
  parameters& below(std::string_view name, const std::function<void(parameters&)>& use, std::string_view sentence);
  parameters& each(std::string_view name, const std::function<void(parameters&)>& use, std::string_view sentence);
  /// A name that other systems' files have and that means nothing here: accepted.
  parameters& ignore(std::string_view name, std::string_view why);
  /// The same of whatever else is given.
  parameters& ignore_the_rest(std::string_view why);

  void complain(std::string_view name, std::string message);
  void finish();
  const std::vector<described>& asked() const { return asked_; }

 private:
  const boost::json::value* find(std::string_view name, std::string default_value, std::string_view sentence);

  const boost::json::object& given_;
  std::string path_;
  std::vector<spec_problem>& problems_;
  std::vector<described> asked_;
};

/// What makes a plugin, by the name its users know.
struct plugin_type {
  std::string_view name;
  /// One sentence for people: what it does.
  std::string_view sentence;
  /// Where the formula comes from.
  std::string_view source;
  using made = std::variant<std::unique_ptr<filter>, std::unique_ptr<scorer>, std::unique_ptr<picker>,
                            std::unique_ptr<profile_handler>, std::unique_ptr<disaggregation_decider>,
                            std::unique_ptr<producer>>;
  made (*make)(parameters&);
  /// Other names it goes by.
  std::vector<std::string_view> aliases = {};
};

/// All plugins, sorted by name.
const std::vector<plugin_type>& plugin_types();
/// By name or alias; null if there is none.
const plugin_type* find_plugin_type(std::string_view name);
/// `a, b, c`-less hint: ` (did you mean "x"?)`, or nothing where no known name is near.
std::string did_you_mean(std::string_view word, const std::vector<std::string>& known);

}  // namespace infernex::router
