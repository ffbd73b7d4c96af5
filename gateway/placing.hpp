#pragma once

#include <chrono>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "actors/router/request_terms.hpp"
#include "actors/router/scheduler.hpp"
#include "gateway/choice.hpp"
#include "messages/view.hpp"

namespace infernex::gateway {

/// Keys of one request that a query carries at most: with more, the tail is left out (512 KiB of keys; at 16
/// tokens a block, a prompt of a million tokens).
inline constexpr std::size_t max_query_keys = 1 << 16;

/// Bytes a request takes in a RouteQuery, roughly; for keeping messages under NATS's limit.
std::size_t query_bytes(const route_request& request);

/// A RouteQuery for requests of one model. `now`: for the time that is left to them.
flatbuffers::DetachedBuffer encode_route_query(
    std::string_view source, std::uint64_t epoch, std::uint64_t sequence, std::string_view model,
    const std::vector<const route_request*>& items,
    std::chrono::steady_clock::time_point now = std::chrono::steady_clock::time_point::max());

/// A router's answer for one request.
choice to_choice(const fb::RouteChoice& decided);

/// Decides in place, on this process's own topology and loads. `queue`: what the request's headers mean; `full`:
/// engines it is not to go to.
choice place(const route_request& request, const router::model_endpoints* candidates, const router::load_board& loads,
             const router::overlaps& cached, router::scheduler& by, router::clock_point now,
             const router::queue_settings& queue = {}, std::span<const std::string_view> full = {});

/// Places by what needs no index (router::spec_without_cache), because `why` (`router did not answer in 300 ms`).
choice place_by_load(const route_request& request, const router::model_endpoints* candidates,
                     const router::load_board& loads, router::scheduler& by, router::clock_point now,
                     std::string_view why);

/// Says by which PD group each engine that only decodes is to be reached. Where the best candidate is such an engine by
/// itself, computing the prompt there is what was decided; runners-up of anything else leave that to the group.
void name_groups(std::vector<candidate>& ranked, const router::model_endpoints& model);

/// Leading blocks that parity expects in the engine's cache; nothing where neither a prediction nor the index can tell:
/// an engine whose KV events do not flow is not in the index, and its absence there is no zero. `at`: the engine as
/// it announced itself, null if it is gone.
std::optional<std::uint32_t> expected_blocks(const candidate& chosen, bool index_used, const router::endpoint* at);

/// Whether an engine of the model is ready that the request does not exclude.
bool someone_ready(const route_request& request, const router::model_endpoints* candidates);

/// What a reservation for this request counts at a candidate that caches so many leading blocks.
router::load_share share_of(const route_request& request, std::uint32_t cached_blocks);

/// Its part of its tenant's share, in tokens.
std::uint64_t cost_of(const route_request& request);

/// Tokens behind so many leading blocks. Pieces of text are a share of the prompt, whose tokens the engine has counted.
std::uint32_t cached_tokens(const route_request& request, std::uint32_t blocks,
                            std::optional<std::uint32_t> prompt_tokens);

}  // namespace infernex::gateway
