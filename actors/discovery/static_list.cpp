#include "actors/discovery/static_list.hpp"

#include <algorithm>
#include <charconv>
#include <map>
#include <optional>
#include <string_view>

namespace infernex::discovery {

namespace {

constexpr std::size_t max_engines = 4096;
constexpr std::size_t max_name_bytes = 200;
constexpr std::uint32_t max_block_size = 65'536;

std::string quoted(std::string_view text) { return '"' + std::string(text.substr(0, 80)) + '"'; }

bool is_port(std::string_view text) {
  unsigned port = 0;
  const auto [end, problem] = std::from_chars(text.data(), text.data() + text.size(), port);
  return problem == std::errc{} && end == text.data() + text.size() && port >= 1 && port <= 65'535;
}

/// `host:port`, the host not empty; an IPv6 address stands in brackets.
bool is_host_and_port(std::string_view text) {
  const auto colon = text.rfind(':');
  if (colon == std::string_view::npos || colon == 0 || !is_port(text.substr(colon + 1))) return false;
  const auto host = text.substr(0, colon);
  if (host.front() == '[') return host.size() > 2 && host.back() == ']';
  return host.find_first_of(":/ @?#") == std::string_view::npos;
}

bool is_http_url(std::string_view text) {
  constexpr std::string_view scheme = "http://";
  if (!text.starts_with(scheme)) return false;
  text.remove_prefix(scheme.size());
  return is_host_and_port(text.substr(0, text.find('/')));
}

/// What an agent can connect to: a wildcard is for whoever binds.
bool is_zmq_endpoint(std::string_view text) {
  if (text.starts_with("tcp://")) return is_host_and_port(text.substr(6)) && text.find('*') == std::string_view::npos;
  return (text.starts_with("ipc://") || text.starts_with("inproc://")) && text.find("://") + 3 < text.size();
}

std::optional<std::string> name_mistake(std::string_view name) {
  if (name.empty()) return "a name is required";
  if (name.size() > max_name_bytes) return "at most " + std::to_string(max_name_bytes) + " bytes";
  if (std::ranges::any_of(name, [](unsigned char c) { return c < 0x20 || c == 0x7f; })) return "no control characters";
  return std::nullopt;
}

}  // namespace

std::string render(const descriptor_mistake& mistake) {
  return "engines[" + std::to_string(mistake.index) + "]." + mistake.key + ": " + mistake.message;
}

std::vector<descriptor_mistake> find_mistakes(std::span<const engine_descriptor> engines) {
  std::vector<descriptor_mistake> mistakes;
  std::map<std::string_view, std::size_t> first_use;
  for (std::size_t i = 0; i < engines.size(); ++i) {
    const auto& engine = engines[i];
    const auto complain = [&mistakes, i](std::string key, std::string message) {
      mistakes.push_back({i, std::move(key), std::move(message)});
    };
    if (auto mistake = name_mistake(engine.instance)) {
      complain("instance", *mistake);
    } else if (auto [first, fresh] = first_use.emplace(engine.instance, i); !fresh) {
      complain("instance",
               quoted(engine.instance) + " is already the name of engines[" + std::to_string(first->second) + "]");
    }
    if (!engine.model.empty())
      if (auto mistake = name_mistake(engine.model)) complain("model", *mistake);
    if (!is_http_url(engine.url)) complain("url", "an http:// URL with host and port, not " + quoted(engine.url));
    if (!engine.kv_events.empty() && !is_zmq_endpoint(engine.kv_events))
      complain("kv_events",
               "an endpoint to connect to, tcp://host:port or ipc://path, not " + quoted(engine.kv_events));
    if (!engine.kv_replay.empty() && !is_zmq_endpoint(engine.kv_replay))
      complain("kv_replay",
               "an endpoint to connect to, tcp://host:port or ipc://path, not " + quoted(engine.kv_replay));
    if (!engine.kv_replay.empty() && engine.kv_events.empty()) complain("kv_replay", "of no use without kv_events");
    if (engine.block_size && (*engine.block_size == 0 || *engine.block_size > max_block_size))
      complain("block_size", "between 1 and " + std::to_string(max_block_size));
  }
  if (engines.size() > max_engines)
    mistakes.push_back({max_engines, "instance", "at most " + std::to_string(max_engines) + " engines an agent"});
  return mistakes;
}

result<std::vector<engine_descriptor>> checked(std::vector<engine_descriptor> engines) {
  const auto mistakes = find_mistakes(engines);
  if (mistakes.empty()) return engines;
  std::string detail;
  for (const auto& mistake : mistakes) detail += (detail.empty() ? "" : "; ") + render(mistake);
  return error{errc::invalid_config, detail};
}

}  // namespace infernex::discovery
