#include "actors/router/scheduler_build.hpp"

#include <algorithm>
#include <cmath>

namespace infernex::router {

namespace {

std::string at(std::string_view list, std::size_t i) { return std::string(list) + "[" + std::to_string(i) + "]"; }

struct builder {
  const scheduler_spec& spec;
  std::vector<spec_problem>& problems;
  built_scheduler out;

  void complain(std::string path, std::string message) { problems.push_back({std::move(path), std::move(message)}); }

  template <class Plugin>
  Plugin* as(plugin_type::made& made) {
    auto* held = std::get_if<std::unique_ptr<Plugin>>(&made);
    return held ? held->get() : nullptr;
  }

  void make_plugin(const plugin_type& type, const std::string& name, const boost::json::object& given,
                   const std::string& path) {
    parameters reader(given, path, problems);
    auto made = type.make(reader);
    reader.finish();
    out.plugins.emplace_back(name, std::move(made));
  }

  void make_plugins() {
    for (std::size_t i = 0; i < spec.plugins.size(); ++i) {
      const auto& wanted = spec.plugins[i];
      const auto path = at("plugins", i);
      const auto* type = find_plugin_type(wanted.type);
      if (!type) {
        std::vector<std::string> known;
        for (const auto& t : plugin_types()) {
          known.emplace_back(t.name);
          known.insert(known.end(), t.aliases.begin(), t.aliases.end());
        }
        complain(path + ".type", "no plugin of type \"" + wanted.type + "\"" + did_you_mean(wanted.type, known));
        continue;
      }
      const auto& name = wanted.name.empty() ? wanted.type : wanted.name;
      if (find(name)) {
        complain(path + ".name", "a second plugin named \"" + name + "\"");
        continue;
      }
      make_plugin(*type, name, wanted.parameters, path + ".parameters");
    }
  }

  using entry = std::pair<std::string, plugin_type::made>;

  entry* find(std::string_view name) {
    for (auto& known : out.plugins)
      if (known.first == name) return &known;
    return nullptr;
  }

  bool is_declared(std::string_view name) const {
    return std::any_of(spec.plugins.begin(), spec.plugins.end(),
                       [&](const auto& p) { return (p.name.empty() ? p.type : p.name) == name; });
  }

  /// One that the configuration did not name; null where it gave the name to a plugin of another kind.
  template <class Plugin>
  entry* add_default(std::string_view type) {
    if (auto* known = find(type)) {
      if (as<Plugin>(known->second)) return known;
      complain("plugins", "the name \"" + std::string(type) + "\" is that of a plugin which is added by default");
      return nullptr;
    }
    static const boost::json::object none;
    make_plugin(*find_plugin_type(type), std::string(type), none, {});
    return &out.plugins.back();
  }

  void add(built_profile& into, entry& from, double weight, const std::string& path) {
    auto& [name, made] = from;
    if (auto* f = as<filter>(made)) {
      into.filters.push_back({f, name, 1.0});
      into.by_role = into.by_role || f->by_role();
      into.members.push_back(f);
    } else if (auto* s = as<scorer>(made)) {
      into.scorers.push_back({s, name, weight});
      into.members.push_back(s);
      if (auto* drops = s->filters()) {
        into.filters.push_back({drops, name, 1.0});
        into.by_role = into.by_role || drops->by_role();
      }
    } else if (auto* p = as<picker>(made)) {
      if (into.picker) return complain(path, "a second picker in one profile");
      into.picker = p;
      into.members.push_back(p);
    } else if (as<profile_handler>(made) || as<producer>(made)) {
      // openFuyao's files list their handler among a profile's plugins; it is found by its kind.
    } else {
      complain(path, "\"" + name + "\" is neither a filter, a scorer nor a picker");
    }
  }

  void make_profiles() {
    if (spec.profiles.empty()) complain("schedulingProfiles", "at least one profile is needed");
    for (std::size_t i = 0; i < spec.profiles.size(); ++i) {
      const auto& wanted = spec.profiles[i];
      const auto path = at("schedulingProfiles", i);
      if (out.find(wanted.name) && i != 0) complain(path + ".name", "a second profile named \"" + wanted.name + "\"");
      built_profile made;
      made.name = wanted.name;
      for (std::size_t u = 0; u < wanted.plugins.size(); ++u) {
        const auto& use = wanted.plugins[u];
        const auto use_path = at(path + ".plugins", u);
        if (!std::isfinite(use.weight) || use.weight < 0 || use.weight > 1e6)
          complain(use_path + ".weight", "a number from 0 to 1000000");
        if (auto* known = find(use.plugin)) {
          add(made, *known, use.weight, use_path + ".pluginRef");
          continue;
        }
        if (is_declared(use.plugin)) continue;  // what is wrong with it is told already
        std::vector<std::string> names;
        for (const auto& [name, plugin] : out.plugins) names.push_back(name);
        complain(use_path + ".pluginRef",
                 "no plugin is named \"" + use.plugin + "\"" + did_you_mean(use.plugin, names));
      }
      if (!made.picker)
        if (auto* from = add_default<picker>("max-score-picker")) add(made, *from, 1.0, {});
      out.profiles.push_back(std::move(made));
    }
  }

  static plugin& any(plugin_type::made& made) {
    return std::visit([](auto& held) -> plugin& { return *held; }, made);
  }

  void introduce() {
    for (auto& [name, made] : out.plugins)
      for (auto& [other_name, other] : out.plugins)
        if (&made != &other) any(made).meet(any(other));
    if (!out.handler) return;
    std::vector<std::string_view> names;
    for (const auto& profile : out.profiles) names.push_back(profile.name);
    out.handler->know_profiles(std::move(names));
  }

  void choose_handler() {
    for (auto& [name, made] : out.plugins)
      if (auto* h = as<profile_handler>(made)) {
        if (out.handler) complain("plugins", "more than one profile handler");
        out.handler = h;
      }
    if (!out.handler)
      if (auto* from = add_default<profile_handler>("single-profile-handler"))
        out.handler = as<profile_handler>(from->second);
    if (!out.handler) return;
    for (const auto profile : out.handler->profiles())
      if (!out.find(profile))
        complain("schedulingProfiles", "the profile handler wants a profile \"" + std::string(profile) + "\"");
    const auto decider = out.handler->decider_name();
    if (decider.empty()) return;
    auto* from = find(decider);
    if (!from && find_plugin_type(decider)) from = add_default<disaggregation_decider>(decider);
    auto* d = from ? as<disaggregation_decider>(from->second) : nullptr;
    if (auto* compares = from && !d ? as<scorer>(from->second) : nullptr) d = compares->decides();
    if (d)
      out.handler->use(*d);
    else
      complain("plugins", "the profile handler wants a decider \"" + std::string(decider) + "\"");
  }
};

}  // namespace

const built_profile* built_scheduler::find(std::string_view profile) const {
  if (profile.empty()) return profiles.empty() ? nullptr : &profiles.front();
  const auto it = std::find_if(profiles.begin(), profiles.end(), [&](const auto& p) { return p.name == profile; });
  return it == profiles.end() ? nullptr : &*it;
}

built_scheduler build(const scheduler_spec& spec, std::vector<spec_problem>& problems) {
  builder b{spec, problems, {}};
  b.out.name = spec.name;
  b.out.runners_up = spec.runners_up;
  // Profiles look at the names in this list: it must not grow beyond (a picker, a handler and a decider by default).
  b.out.plugins.reserve(spec.plugins.size() + 3);
  b.make_plugins();
  b.make_profiles();
  b.choose_handler();
  b.introduce();
  for (auto& [name, made] : b.out.plugins)
    std::visit([&](auto& p) { b.out.uses_cache = b.out.uses_cache || p->uses_cache(); }, made);
  return std::move(b.out);
}

}  // namespace infernex::router
