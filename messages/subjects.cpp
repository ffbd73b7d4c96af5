#include "messages/subjects.hpp"

namespace infernex {

namespace {

bool is_plain(char c) { return (c >= 'A' && c <= 'Z') || (c >= 'a' && c <= 'z') || (c >= '0' && c <= '9') || c == '-'; }

int hex_value(char c) {
  if (c >= '0' && c <= '9') return c - '0';
  if (c >= 'A' && c <= 'F') return c - 'A' + 10;
  return -1;
}

}  // namespace

std::string escape_token(std::string_view text) {
  static constexpr char digits[] = "0123456789ABCDEF";
  if (text.empty()) return "_";
  std::string token;
  token.reserve(text.size());
  for (char c : text) {
    if (is_plain(c)) {
      token += c;
    } else {
      const auto byte = static_cast<unsigned char>(c);
      token += '_';
      token += digits[byte >> 4];
      token += digits[byte & 15];
    }
  }
  return token;
}

result<std::string> unescape_token(std::string_view token) {
  if (token == "_") return std::string{};
  const auto bad = [&] { return error{errc::malformed_subject, "token '" + std::string(token) + "'"}; };
  if (token.empty()) return bad();
  std::string text;
  for (std::size_t i = 0; i < token.size(); ++i) {
    if (is_plain(token[i])) {
      text += token[i];
      continue;
    }
    if (token[i] != '_' || i + 2 >= token.size()) return bad();
    const int high = hex_value(token[i + 1]);
    const int low = hex_value(token[i + 2]);
    if (high < 0 || low < 0) return bad();
    const char c = static_cast<char>(high * 16 + low);
    if (is_plain(c)) return bad();  // not injective otherwise
    text += c;
    i += 2;
  }
  return text;
}

namespace {
std::string join(const std::string& prefix, std::string_view area, std::string_view model, std::string_view instance,
                 std::string_view leaf) {
  std::string name = prefix;
  for (auto part : {area, model, instance, leaf}) {
    if (part.empty()) continue;
    name += '.';
    name += part;
  }
  return name;
}
}  // namespace

#define INFERNEX_PER_ENGINE(method, area, leaf, Table)                                           \
  subject<fb::Table> subjects::method(std::string_view model, std::string_view instance) const { \
    return {join(prefix_, area, escape_token(model), escape_token(instance), leaf)};             \
  }                                                                                              \
  subject<fb::Table> subjects::any_##method() const { return {join(prefix_, area, "*", "*", leaf)}; }

INFERNEX_PER_ENGINE(announce, "engine", "announce", EngineAnnounce)
INFERNEX_PER_ENGINE(load, "engine", "load", EngineLoad)
INFERNEX_PER_ENGINE(kv_delta, "kv", "delta", KvDelta)
INFERNEX_PER_ENGINE(kv_snapshot, "kv", "snapshot", KvSnapshotRequest)
#undef INFERNEX_PER_ENGINE

// One token after the area: a model, a router, a PD group or a node.
#define INFERNEX_PER_NAME(method, area, leaf, Table)                 \
  subject<fb::Table> subjects::method(std::string_view name) const { \
    return {join(prefix_, area, escape_token(name), {}, leaf)};      \
  }

INFERNEX_PER_NAME(kv_match, "kv", "match", KvMatchQuery)
INFERNEX_PER_NAME(route_query, "route", "query", RouteQuery)
INFERNEX_PER_NAME(route_decision, "route", "decision", RouteDecision)
INFERNEX_PER_NAME(request_life, "request", "life", RequestLife)
INFERNEX_PER_NAME(router_announce, "router", "announce", RouterAnnounce)
INFERNEX_PER_NAME(pd_state, "pd", "state", PdState)
INFERNEX_PER_NAME(pd_control, "pd", "control", PdControl)
INFERNEX_PER_NAME(hw_sample, "hw", "sample", HwSample)
INFERNEX_PER_NAME(hw_event, "hw", "event", HwEvent)
INFERNEX_PER_NAME(hw_inventory, "hw", "inventory", HwInventory)
#undef INFERNEX_PER_NAME

subject<fb::AnnounceRequest> subjects::announce_request() const {
  return {join(prefix_, "engine", {}, {}, "announce-request")};
}
subject<fb::KvMatchQuery> subjects::any_kv_match() const { return {join(prefix_, "kv", "*", {}, "match")}; }
subject<fb::RouteQuery> subjects::any_route_query() const { return {join(prefix_, "route", "*", {}, "query")}; }
subject<fb::RouteQuery> subjects::route_query_of(std::string_view model, std::string_view router) const {
  return {join(prefix_, "route", escape_token(model), escape_token(router), "query")};
}
subject<fb::RouteQuery> subjects::any_route_query_of(std::string_view router) const {
  return {join(prefix_, "route", "*", escape_token(router), "query")};
}
subject<fb::RouteQuery> subjects::any_route_query_of_any() const { return {join(prefix_, "route", "*", "*", "query")}; }
subject<fb::RouterAnnounce> subjects::any_router_announce() const {
  return {join(prefix_, "router", "*", {}, "announce")};
}
subject<fb::PdState> subjects::any_pd_state() const { return {join(prefix_, "pd", "*", {}, "state")}; }
subject<fb::RequestLife> subjects::any_request_life() const { return {join(prefix_, "request", "*", {}, "life")}; }

subject<fb::HwSample> subjects::any_hw_sample() const { return {join(prefix_, "hw", "*", {}, "sample")}; }
subject<fb::HwEvent> subjects::any_hw_event() const { return {join(prefix_, "hw", "*", {}, "event")}; }
subject<fb::HwInventory> subjects::any_hw_inventory() const { return {join(prefix_, "hw", "*", {}, "inventory")}; }
subject<fb::Verdict> subjects::verdict(std::string_view node, std::optional<std::uint32_t> device) const {
  return {join(prefix_, "diag", escape_token(node), device ? std::to_string(*device) : "node", "verdict")};
}
subject<fb::Verdict> subjects::any_verdict() const { return {join(prefix_, "diag", "*", "*", "verdict")}; }

result<subject_names> subjects::parse(std::string_view name) const {
  const auto bad = [&] { return error{errc::malformed_subject, std::string(name)}; };
  if (!name.starts_with(prefix_) || name.size() <= prefix_.size() || name[prefix_.size()] != '.') return bad();
  std::vector<std::string_view> parts;
  for (auto rest = name.substr(prefix_.size() + 1);;) {
    const auto dot = rest.find('.');
    parts.push_back(rest.substr(0, dot));
    if (dot == std::string_view::npos) break;
    rest.remove_prefix(dot + 1);
  }
  if (parts.size() < 3 || parts.size() > 4) return bad();
  auto model = unescape_token(parts[1]);
  if (!model) return bad();
  subject_names names{*model, {}};
  if (parts.size() == 4) {
    auto instance = unescape_token(parts[2]);
    if (!instance) return bad();
    names.instance = *instance;
  }
  return names;
}

}  // namespace infernex
