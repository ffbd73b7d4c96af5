#include "actors/simulator/replay_options.hpp"

#include <algorithm>
#include <charconv>
#include <cmath>

namespace infernex::simulator {

namespace {

template <class T>
std::optional<T> number(std::string_view text) {
  T value{};
  const auto* end = text.data() + text.size();
  const auto [stop, problem] = std::from_chars(text.data(), end, value);
  if (problem != std::errc{} || stop != end) return std::nullopt;
  return value;
}

/// A time after the start, in milliseconds.
std::optional<double> seconds(std::string_view text) {
  const auto value = number<double>(text);
  if (!value || !std::isfinite(*value) || *value < 0) return std::nullopt;
  return *value * 1e3;
}

std::optional<replay_role> role_of(std::string_view name) {
  if (name == "aggregated") return replay_role::aggregated;
  if (name == "prefill") return replay_role::prefill;
  if (name == "decode") return replay_role::decode;
  return std::nullopt;
}

error wrong(std::string_view option, const std::string& value, const std::string& expected) {
  return {errc::invalid_config, "--" + std::string(option) + " " + value + ": " + expected};
}

/// ENGINE, before `mark`; what is after it is left in `rest`.
std::optional<std::size_t> engine_before(std::string_view value, char mark, std::size_t engines,
                                         std::string_view& rest) {
  const auto at = value.find(mark);
  if (at == std::string_view::npos) return std::nullopt;
  rest = value.substr(at + 1);
  const auto engine = number<std::size_t>(value.substr(0, at));
  return engine && *engine < engines ? engine : std::nullopt;
}

}  // namespace

result<std::vector<replay_engine_settings>> replay_fleet_of(const fleet_options& options, const settings& each) {
  const bool apart = options.prefill + options.decode > 0;
  if (apart && (options.prefill == 0 || options.decode == 0))
    return error{errc::invalid_config, "--prefill and --decode: at least one engine of each"};
  const std::uint64_t count = (apart ? std::uint64_t{options.prefill} + options.decode : options.engines);
  if (count == 0 || count + options.additions.size() > max_replay_engines)
    return error{errc::invalid_config, "from 1 to " + std::to_string(max_replay_engines) + " engines"};

  std::vector<replay_engine_settings> fleet;
  const auto add = [&](replay_role role, double starts_ms) {
    replay_engine_settings one;
    one.engine = each;
    one.speed = each.speed;
    one.role = role;
    one.starts_ms = starts_ms;
    fleet.push_back(std::move(one));
  };
  for (std::uint64_t i = 0; i < count; ++i)
    add(!apart ? replay_role::aggregated : i < options.prefill ? replay_role::prefill : replay_role::decode, 0);

  for (const auto& value : options.additions) {
    const std::string_view whole = value;
    const auto at = whole.find('@');
    const auto role = at == std::string_view::npos
                          ? std::optional(apart ? replay_role::decode : replay_role::aggregated)
                          : role_of(whole.substr(0, at));
    const auto when = seconds(at == std::string_view::npos ? whole : whole.substr(at + 1));
    if (!role || !when) return wrong("add", value, "SECONDS, or ROLE@SECONDS with prefill, decode or aggregated");
    if (apart == (*role == replay_role::aggregated))
      return wrong("add", value, "a fleet has prefill and decode engines, or aggregated ones");
    add(*role, *when);
  }
  const auto engines = "engines are 0.." + std::to_string(fleet.size() - 1);
  for (const auto& value : options.failures) {
    std::string_view rest;
    const auto engine = engine_before(value, '@', fleet.size(), rest);
    const auto when = seconds(rest);
    if (!engine || !when) return wrong("fail", value, "ENGINE@SECONDS, " + engines);
    fleet[*engine].dies_ms = *when;
  }
  for (const auto& value : options.slow) {
    std::string_view rest;
    const auto engine = engine_before(value, '=', fleet.size(), rest);
    const auto factor = number<double>(rest);
    if (!engine || !factor || !std::isfinite(*factor) || !(*factor > 0))
      return wrong("slow", value, "ENGINE=FACTOR (2: half as fast), " + engines);
    fleet[*engine].speed /= *factor;
  }
  return fleet;
}

std::string describe_fleet(const fleet_options& options) {
  auto text = options.prefill + options.decode > 0
                  ? std::to_string(options.prefill) + " prefill + " + std::to_string(options.decode) + " decode engines"
                  : std::to_string(options.engines) + (options.engines == 1 ? " engine" : " engines");
  const auto say = [&text](const std::vector<std::string>& which, std::string_view what) {
    if (which.empty()) return;
    text += ", " + std::string(what);
    for (const auto& one : which) text += ' ' + one;
  };
  say(options.additions, "added at");
  say(options.failures, "lost");
  say(options.slow, "slow");
  return text;
}

void fit_engine(settings& engine, std::uint32_t block_tokens, const trace& requests) {
  const auto memory = std::uint64_t{engine.block_size} * engine.total_blocks;
  engine.block_size = block_tokens;
  engine.total_blocks = static_cast<std::uint32_t>(std::max<std::uint64_t>(1, memory / block_tokens));
  std::uint64_t longest = 0;
  for (std::size_t i = 0; i < requests.size(); ++i)
    longest = std::max(longest, std::uint64_t{requests[i].prompt_tokens} + requests[i].output_tokens);
  const auto room = std::uint64_t{engine.block_size} * engine.total_blocks;
  engine.max_model_len =
      static_cast<std::uint32_t>(std::max<std::uint64_t>(engine.max_model_len, std::min(longest, room)));
}

std::optional<double> full_rate(const std::function<double(double)>& goodput, double start, double wanted) {
  double good = 0, bad = 0;
  for (double rate = start; rate <= start * 1024 && rate >= start / 1024;) {
    const bool enough = goodput(rate) >= wanted;
    (enough ? good : bad) = rate;
    if (good > 0 && bad > 0) break;
    rate = enough ? rate * 2 : rate / 2;
  }
  if (good == 0 || bad == 0) return std::nullopt;
  while (bad > good * 1.02) {
    const auto middle = std::sqrt(good * bad);
    (goodput(middle) >= wanted ? good : bad) = middle;
  }
  return good;
}

}  // namespace infernex::simulator
