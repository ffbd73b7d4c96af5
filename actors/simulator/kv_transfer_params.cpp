#include "actors/simulator/kv_transfer_params.hpp"

#include <limits>

#include <boost/json/array.hpp>
#include <boost/json/serialize.hpp>

#include "actors/simulator/json_fields.hpp"

namespace infernex::simulator {

namespace json = boost::json;

namespace {

constexpr std::size_t most_blocks = 1 << 20;

json::array array_of(std::span<const std::uint32_t> blocks) {
  json::array ids;
  ids.reserve(blocks.size());
  for (const auto id : blocks) ids.emplace_back(id);
  return ids;
}

void append_blocks(json_fields& fields, const json::value& list, std::vector<std::uint32_t>& into, int depth) {
  const auto* entries = list.if_array();
  if (!entries) return fields.refuse_type("remote_block_ids", "a list of block ids", list);
  for (const auto& entry : *entries) {
    if (entry.is_array() && depth == 0) {
      append_blocks(fields, entry, into, 1);
      continue;
    }
    const auto* id = entry.if_int64();
    if (!id || *id < 0 || *id > std::numeric_limits<std::uint32_t>::max() || into.size() >= most_blocks)
      return fields.refuse("remote_block_ids", "remote_block_ids: not a block id: " + json::serialize(entry) + ".");
    into.push_back(static_cast<std::uint32_t>(*id));
  }
}

/// One list, or one a KV group.
std::vector<std::uint32_t> read_blocks(json_fields& fields, std::string_view name) {
  std::vector<std::uint32_t> blocks;
  if (const auto* list = fields.find(name)) append_blocks(fields, *list, blocks, 0);
  return blocks;
}

void read_remote(json_fields& fields, kv_transfer_request& request) {
  request.engine_id = fields.text("remote_engine_id").value_or("");
  request.host = fields.text("remote_host").value_or("");
  request.port = static_cast<std::uint16_t>(fields.integer("remote_port", 0, 65'535).value_or(0));
  request.blocks = read_blocks(fields, "remote_block_ids");
}

void require(json_fields& fields, bool given, std::string_view name) {
  if (!given) fields.refuse(name, "kv_transfer_params." + std::string(name) + " is required.");
}

void read_address(json_fields& fields, std::string_view address, kv_transfer_request& request) {
  constexpr std::string_view scheme = "http://";
  if (address.starts_with(scheme)) address.remove_prefix(scheme.size());
  while (address.ends_with('/')) address.remove_suffix(1);
  const auto colon = address.rfind(':');
  unsigned port = 0;
  if (colon != std::string_view::npos) {
    for (const char digit : address.substr(colon + 1)) {
      if (digit < '0' || digit > '9' || (port = port * 10 + static_cast<unsigned>(digit - '0')) > 65'535) {
        port = 0;
        break;
      }
    }
  }
  if (port == 0)
    return fields.refuse("remote_bootstrap_addr", "kv_transfer_params.remote_bootstrap_addr: http://host:port.");
  request.host = std::string(address.substr(0, colon));
  request.port = static_cast<std::uint16_t>(port);
}

void read_giving(json_fields& fields, transfer_protocol protocol, kv_transfer_request& request) {
  switch (protocol) {
    case transfer_protocol::mooncake:
      request.key = fields.text("transfer_id").value_or("");
      require(fields, !request.key.empty(), "transfer_id");
      request.awaited = true;
      return;
    case transfer_protocol::ascend_layerwise:
      read_remote(fields, request);
      request.key = fields.text("request_id").value_or("");
      request.cached_tokens = static_cast<std::uint32_t>(fields.integer("remote_cached_tokens").value_or(0));
      require(fields, !request.key.empty(), "request_id");
      require(fields, !request.host.empty(), "remote_host");
      require(fields, request.port != 0, "remote_port");
      request.awaited = true;
      return;
    default:
      return;
  }
}

void read_taking(json_fields& fields, transfer_protocol protocol, kv_transfer_request& request) {
  switch (protocol) {
    case transfer_protocol::mooncake:
      request.key = fields.text("transfer_id").value_or("");
      request.engine_id = fields.text("remote_engine_id").value_or("");
      require(fields, !request.key.empty(), "transfer_id");
      read_address(fields, fields.text("remote_bootstrap_addr").value_or(""), request);
      return;
    case transfer_protocol::ascend_layerwise:
      request.metaserver = fields.text("metaserver").value_or("");
      require(fields, !request.metaserver.empty(), "metaserver");
      return;
    default:
      read_remote(fields, request);
      request.key = fields.text("remote_request_id").value_or("");
      // vLLM warns of incomplete parameters and computes the prompt itself.
      if (request.key.empty() || request.engine_id.empty() || request.host.empty() || request.port == 0)
        request.what = kv_transfer_request::part::none;
  }
}

kv_transfer_request read_room(json_fields& fields, transfer_role role) {
  kv_transfer_request request;
  const auto room = fields.integer("bootstrap_room", 0, std::numeric_limits<std::int64_t>::max());
  if (!room) return request;
  request.what = role == transfer_role::prefill ? kv_transfer_request::part::give : kv_transfer_request::part::take;
  request.key = std::to_string(*room);
  request.awaited = role == transfer_role::prefill;
  request.host = fields.text("bootstrap_host").value_or("");
  request.port = static_cast<std::uint16_t>(fields.integer("bootstrap_port", 1, 65'535).value_or(0));
  if (request.host.empty()) fields.refuse("bootstrap_host", "bootstrap_host is required with bootstrap_room.");
  if (request.port == 0) fields.refuse("bootstrap_port", "bootstrap_port is required with bootstrap_room.");
  return request;
}

}  // namespace

parsed<kv_transfer_request> parse_transfer(const json::object& body, const kv_transfer_settings& engine) {
  kv_transfer_request request;
  if (engine.protocol == transfer_protocol::none) return request;
  json_fields fields(body);
  if (engine.protocol == transfer_protocol::sglang) {
    request = read_room(fields, engine.role);
    if (fields.problem()) return *fields.problem();
    return request;
  }
  const auto* value = fields.find("kv_transfer_params");
  if (!value) return request;
  const auto* object = value->if_object();
  if (!object) {
    fields.refuse_type("kv_transfer_params", "an object", *value);
    return *fields.problem();
  }
  json_fields inner(*object);
  const bool give = inner.boolean("do_remote_decode").value_or(false);
  const bool take = inner.boolean("do_remote_prefill").value_or(false);
  if (give && engine.role != transfer_role::decode) {
    request.what = kv_transfer_request::part::give;
    read_giving(inner, engine.protocol, request);
  } else if (take && engine.role != transfer_role::prefill) {
    request.what = kv_transfer_request::part::take;
    read_taking(inner, engine.protocol, request);
  }
  if (inner.problem()) return *inner.problem();
  return request;
}

json::value offered_params(transfer_protocol protocol, const kv_place& here, const kv_offer& offer) {
  if (offer.blocks.empty() || (protocol != transfer_protocol::nixl && protocol != transfer_protocol::ascend))
    return nullptr;
  json::object params{{"do_remote_prefill", true}, {"do_remote_decode", false}};
  const bool nixl = protocol == transfer_protocol::nixl;
  auto blocks = array_of(offer.blocks);
  if (nixl) {
    params["remote_block_ids"] = std::move(blocks);
  } else {
    json::array groups;
    groups.push_back(std::move(blocks));
    params["remote_block_ids"] = std::move(groups);
  }
  params["remote_engine_id"] = here.engine_id;
  params["remote_request_id"] = offer.request_id;
  params["remote_host"] = here.host;
  params["remote_port"] = here.port;
  if (nixl) {
    params["tp_size"] = 1;
    params["remote_num_tokens"] = offer.blocks.size() * offer.block_size;
    return params;
  }
  params["remote_pcp_size"] = 1;
  params["remote_dcp_size"] = 1;
  params["remote_ptp_size"] = 1;
  params["last_token_id"] = offer.last_token;
  params["remote_multi_nodes_meta_mapping"] = json::object();
  params["num_prompt_blocks"] = (offer.prompt_tokens + offer.block_size - 1) / offer.block_size;
  params["remote_block_size"] = offer.block_size;
  return params;
}

std::string metaserver_request(const kv_place& here, std::string_view request_id, std::span<const std::uint32_t> blocks,
                               std::uint32_t block_size, std::uint32_t cached) {
  json::object params{{"token_ids", json::array()},
                      {"request_id", json::string(request_id)},
                      {"do_remote_prefill", false},
                      {"do_remote_decode", true}};
  params["remote_block_ids"] = array_of(blocks);
  params["remote_block_size"] = block_size;
  params["remote_engine_id"] = here.engine_id;
  params["remote_host"] = here.host;
  params["remote_port"] = here.port;
  params["remote_tp_size"] = 1;
  params["remote_pcp_size"] = 1;
  params["remote_dcp_size"] = 1;
  params["remote_cached_tokens"] = cached;
  return json::serialize(params);
}

std::string render_query(const kv_place& here) {
  return json::serialize(json::object{{"0", {{"engine_id", here.engine_id}}}});
}

std::string render(const kv_pull& pull) {
  json::object body{{"key", pull.key}, {"engine_id", pull.engine_id}, {"wanted", pull.wanted}};
  body["wait_ms"] = pull.wait_ms;
  body["remote_block_ids"] = array_of(pull.blocks);
  return json::serialize(body);
}

parsed<kv_pull> parse_pull(std::string_view body) {
  auto read = parse_body(body);
  if (auto* problem = std::get_if<refusal>(&read)) return std::move(*problem);
  json_fields fields(std::get<json::object>(read));
  kv_pull pull;
  pull.key = fields.text("key").value_or("");
  pull.engine_id = fields.text("engine_id").value_or("");
  pull.wanted = static_cast<std::uint32_t>(fields.integer("wanted").value_or(0));
  pull.wait_ms = static_cast<std::uint32_t>(fields.integer("wait_ms").value_or(0));
  pull.blocks = read_blocks(fields, "remote_block_ids");
  if (pull.key.empty()) fields.refuse("key", "key is required.");
  if (fields.problem()) return *fields.problem();
  return pull;
}

}  // namespace infernex::simulator
