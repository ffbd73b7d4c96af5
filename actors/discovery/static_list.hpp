#pragma once

#include <cstddef>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "actors/discovery/engine_descriptor.hpp"
#include "messages/result.hpp"

namespace infernex::discovery {

/// One mistake in a list of engines: which entry (from 0), which field of it, and what is wrong.
struct descriptor_mistake {
  std::size_t index = 0;
  std::string key;
  std::string message;

  friend bool operator==(const descriptor_mistake&, const descriptor_mistake&) = default;
};

/// `engines[2].url: an http:// URL with host and port, not "localhost"`.
std::string render(const descriptor_mistake& mistake);

/// Every mistake in the list, in order of the entries; empty if it can be used. Ranks that the list would be expanded
/// into are looked at as well: names taken twice, ports out of range or of two uses.
std::vector<descriptor_mistake> find_mistakes(std::span<const engine_descriptor> engines);

/// The list with each engine of several data-parallel ranks replaced by its ranks, as vLLM numbers them: the same URL,
/// event endpoints whose tcp port is the rank higher (other endpoints: with `_dp<rank>` behind, from rank 1 on).
/// Precondition: no mistakes.
std::vector<engine_descriptor> expand_ranks(std::span<const engine_descriptor> engines);

/// An engine in one argument, `INSTANCE,URL[,KV_EVENTS[,KV_REPLAY]][,KEY=VALUE…]`, keys role, pd_group, node,
/// kv_protocol and bootstrap_port. Errors: invalid_config, for more fields and other keys. What the first four say is
/// not looked at.
result<engine_descriptor> parse_descriptor(std::string_view text);

/// The list itself, if it can be used. Errors: invalid_config, with every mistake in the detail.
result<std::vector<engine_descriptor>> checked(std::vector<engine_descriptor> engines);

}  // namespace infernex::discovery
