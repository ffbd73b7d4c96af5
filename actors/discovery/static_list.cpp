#include "actors/discovery/static_list.hpp"

#include <algorithm>
#include <array>
#include <charconv>
#include <iterator>
#include <map>
#include <optional>
#include <string_view>
#include <utility>

namespace infernex::discovery {

namespace {

constexpr std::size_t max_engines = 4096;
constexpr std::size_t max_name_bytes = 200;
constexpr std::uint32_t max_block_size = 65'536;
constexpr std::uint32_t max_ranks = 1024;
constexpr std::uint32_t max_port = 65'535;
constexpr std::size_t max_labels = 64;
constexpr std::size_t max_label_bytes = 256;
constexpr std::size_t max_devices = 64;
constexpr std::uint32_t max_device = 1023;

std::string quoted(std::string_view text) { return '"' + std::string(text.substr(0, 80)) + '"'; }

std::optional<std::uint32_t> port_of(std::string_view text) {
  std::uint32_t port = 0;
  const auto [end, problem] = std::from_chars(text.data(), text.data() + text.size(), port);
  if (problem != std::errc{} || end != text.data() + text.size() || port < 1 || port > max_port) return std::nullopt;
  return port;
}

/// `host:port`, the host not empty; an IPv6 address stands in brackets.
bool is_host_and_port(std::string_view text) {
  const auto colon = text.rfind(':');
  if (colon == std::string_view::npos || colon == 0 || !port_of(text.substr(colon + 1))) return false;
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

struct tcp_endpoint {
  std::string_view host;
  std::uint32_t port = 0;
};

/// Unset: not tcp, or not an endpoint.
std::optional<tcp_endpoint> tcp_endpoint_of(std::string_view endpoint) {
  if (!endpoint.starts_with("tcp://")) return std::nullopt;
  const auto colon = endpoint.rfind(':');
  const auto port = port_of(endpoint.substr(colon + 1));
  if (!port) return std::nullopt;
  return tcp_endpoint{endpoint.substr(0, colon), *port};
}

std::string endpoint_of_rank(const std::string& endpoint, std::uint32_t rank) {
  if (endpoint.empty() || rank == 0) return endpoint;
  if (const auto tcp = tcp_endpoint_of(endpoint))
    return std::string(tcp->host) + ':' + std::to_string(tcp->port + rank);
  return endpoint + "_dp" + std::to_string(rank);
}

/// The engine itself, if it has no ranks.
std::vector<engine_descriptor> ranks_of(const engine_descriptor& engine) {
  if (engine.data_parallel_size == 1) return {engine};
  std::vector<engine_descriptor> ranks;
  for (std::uint32_t rank = 0; rank < engine.data_parallel_size; ++rank) {
    auto& one = ranks.emplace_back(engine);
    one.instance += "-dp" + std::to_string(rank);
    one.kv_events = endpoint_of_rank(engine.kv_events, rank);
    one.kv_replay = endpoint_of_rank(engine.kv_replay, rank);
    one.data_parallel_size = 1;
    one.data_parallel_rank = rank;
  }
  return ranks;
}

/// Key and message.
using mistake = std::pair<std::string, std::string>;

/// What goes wrong only because there are ranks.
std::vector<mistake> rank_mistakes(const engine_descriptor& engine) {
  const auto size = engine.data_parallel_size;
  if (size == 0 || size > max_ranks) return {{"data_parallel_size", "between 1 and " + std::to_string(max_ranks)}};
  std::vector<mistake> mistakes;
  const auto events = tcp_endpoint_of(engine.kv_events);
  const auto replay = tcp_endpoint_of(engine.kv_replay);
  const auto last = [size](const tcp_endpoint& first) { return first.port + size - 1; };
  const auto check_range = [&](const char* key, const std::optional<tcp_endpoint>& first) {
    if (first && last(*first) > max_port)
      mistakes.emplace_back(key, "the last of " + std::to_string(size) + " ranks would have port " +
                                     std::to_string(last(*first)) + ", above " + std::to_string(max_port));
  };
  check_range("kv_events", events);
  check_range("kv_replay", replay);
  if (size > 1 && events && replay && events->host == replay->host && events->port <= last(*replay) &&
      replay->port <= last(*events))
    mistakes.emplace_back("kv_replay", "the ports of " + std::to_string(size) +
                                           " ranks overlap those of kv_events: a distance of at least " +
                                           std::to_string(size) + " is needed");
  return mistakes;
}

std::optional<std::string> name_mistake(std::string_view name) {
  if (name.empty()) return "a name is required";
  if (name.size() > max_name_bytes) return "at most " + std::to_string(max_name_bytes) + " bytes";
  if (std::ranges::any_of(name, [](unsigned char c) { return c < 0x20 || c == 0x7f; })) return "no control characters";
  return std::nullopt;
}

bool is_text(std::string_view text) {
  return text.size() <= max_label_bytes &&
         std::ranges::none_of(text, [](unsigned char c) { return c < 0x20 || c == 0x7f; });
}

std::optional<std::string> label_mistake(const engine_descriptor& engine) {
  if (engine.labels.size() > max_labels) return "at most " + std::to_string(max_labels) + " of them";
  for (auto one = engine.labels.begin(); one != engine.labels.end(); ++one) {
    if (one->first.empty()) return "a label without a name";
    if (!is_text(one->first) || !is_text(one->second))
      return quoted(one->first) + ": name and value of at most " + std::to_string(max_label_bytes) +
             " bytes, without control characters";
    if (std::any_of(engine.labels.begin(), one, [&](const auto& before) { return before.first == one->first; }))
      return quoted(one->first) + " is there twice";
  }
  return std::nullopt;
}

std::optional<std::string> device_mistake(std::vector<std::uint32_t> devices) {
  if (devices.size() > max_devices) return "at most " + std::to_string(max_devices) + " of them";
  std::ranges::sort(devices);
  if (!devices.empty() && devices.back() > max_device) return "indices up to " + std::to_string(max_device);
  if (std::ranges::adjacent_find(devices) != devices.end()) return "each of them once";
  return std::nullopt;
}

std::optional<std::string> transfer_mistake(const kv_transfer& how) {
  if (how.protocol == fb::KvProtocol::None) return "a protocol: nixl, mooncake, ascend, ascend-layerwise or sglang";
  if (!is_text(how.connector) || !is_text(how.engine_id))
    return "connector and engine_id of at most " + std::to_string(max_label_bytes) +
           " bytes, without control characters";
  if (how.bootstrap_port && *how.bootstrap_port == 0) return "a bootstrap_port between 1 and 65535";
  return std::nullopt;
}

template <class Value>
using word = std::pair<std::string_view, Value>;
constexpr word<fb::EngineRole> engine_roles[] = {{"aggregated", fb::EngineRole::Aggregated},
                                                 {"prefill", fb::EngineRole::Prefill},
                                                 {"decode", fb::EngineRole::Decode}};
constexpr word<fb::KvProtocol> kv_protocols[] = {{"nixl", fb::KvProtocol::Nixl},
                                                 {"mooncake", fb::KvProtocol::Mooncake},
                                                 {"ascend", fb::KvProtocol::Ascend},
                                                 {"ascend-layerwise", fb::KvProtocol::AscendLayerwise},
                                                 {"sglang", fb::KvProtocol::Sglang}};

/// Null if it is none of them.
template <class Value, std::size_t Count>
const Value* find_word(const word<Value> (&all)[Count], std::string_view text) {
  for (const auto& [name, value] : all)
    if (name == text) return &value;
  return nullptr;
}

/// One KEY=VALUE of an engine in one argument. What is wrong with it, or nothing.
std::string read_word(std::string_view key, std::string_view value, engine_descriptor& into) {
  if (key == "pd_group") {
    into.pd_group = value;
  } else if (key == "node") {
    into.node = value;
  } else if (key == "role") {
    const auto* role = find_word(engine_roles, value);
    if (!role) return "role: aggregated, prefill or decode, not " + quoted(value);
    into.role = *role;
  } else if (key == "kv_protocol") {
    const auto* protocol = find_word(kv_protocols, value);
    if (!protocol) return "kv_protocol: nixl, mooncake, ascend, ascend-layerwise or sglang, not " + quoted(value);
    if (!into.kv_transfer) into.kv_transfer.emplace();
    into.kv_transfer->protocol = *protocol;
  } else if (key == "bootstrap_port") {
    const auto port = port_of(value);
    if (!port) return "bootstrap_port: 1 to 65535, not " + quoted(value);
    if (!into.kv_transfer) into.kv_transfer.emplace();
    into.kv_transfer->bootstrap_port = static_cast<std::uint16_t>(*port);
  } else {
    return "keys are role, pd_group, node, kv_protocol and bootstrap_port, not " + quoted(key);
  }
  return {};
}

}  // namespace

std::string render(const descriptor_mistake& mistake) {
  return "engines[" + std::to_string(mistake.index) + "]." + mistake.key + ": " + mistake.message;
}

std::vector<descriptor_mistake> find_mistakes(std::span<const engine_descriptor> engines) {
  std::vector<descriptor_mistake> mistakes;
  std::map<std::string, std::size_t> first_use;
  std::uint64_t agents = 0;
  for (std::size_t i = 0; i < engines.size(); ++i) {
    const auto& engine = engines[i];
    const auto complain = [&mistakes, i](std::string key, std::string message) {
      mistakes.push_back({i, std::move(key), std::move(message)});
    };
    if (auto mistake = name_mistake(engine.instance)) {
      complain("instance", *mistake);
    } else if (engine.data_parallel_size <= max_ranks) {
      for (const auto& rank : ranks_of(engine)) {
        const auto [first, fresh] = first_use.emplace(rank.instance, i);
        if (fresh) continue;
        complain("instance",
                 quoted(rank.instance) + " is already the name of engines[" + std::to_string(first->second) + "]");
        break;
      }
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
    if (auto mistake = label_mistake(engine)) complain("labels", *mistake);
    if (auto mistake = device_mistake(engine.devices)) complain("devices", *mistake);
    if (engine.kv_transfer)
      if (auto mistake = transfer_mistake(*engine.kv_transfer)) complain("kv_transfer", *mistake);
    for (auto& [key, message] : rank_mistakes(engine)) complain(std::move(key), std::move(message));
    const bool had_room = agents <= max_engines;
    agents += engine.data_parallel_size;
    if (had_room && agents > max_engines)
      complain("instance", "at most " + std::to_string(max_engines) + " engines an agent, ranks counted");
  }
  return mistakes;
}

std::vector<engine_descriptor> expand_ranks(std::span<const engine_descriptor> engines) {
  std::vector<engine_descriptor> expanded;
  for (const auto& engine : engines) std::ranges::move(ranks_of(engine), std::back_inserter(expanded));
  return expanded;
}

result<engine_descriptor> parse_descriptor(std::string_view text) {
  engine_descriptor engine;
  std::array<std::string*, 4> in_order{&engine.instance, &engine.url, &engine.kv_events, &engine.kv_replay};
  std::size_t next = 0;
  for (;;) {
    const auto end = std::min(text.find(','), text.size());
    const auto field = text.substr(0, end);
    const auto equals = field.find('=');
    if (next >= 2 && equals != std::string_view::npos) {
      if (auto problem = read_word(field.substr(0, equals), field.substr(equals + 1), engine); !problem.empty())
        return error{errc::invalid_config, std::move(problem)};
    } else if (next < in_order.size()) {
      *in_order[next++] = field;
    } else {
      return error{
          errc::invalid_config,
          "INSTANCE,URL[,KV_EVENTS[,KV_REPLAY]][,KEY=VALUE…]: nothing is known to follow, not " + quoted(field)};
    }
    if (end == text.size()) return engine;
    text.remove_prefix(end + 1);
  }
}

result<std::vector<engine_descriptor>> checked(std::vector<engine_descriptor> engines) {
  const auto mistakes = find_mistakes(engines);
  if (mistakes.empty()) return engines;
  std::string detail;
  for (const auto& mistake : mistakes) detail += (detail.empty() ? "" : "; ") + render(mistake);
  return error{errc::invalid_config, detail};
}

}  // namespace infernex::discovery
