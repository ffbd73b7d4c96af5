#pragma once

#include <algorithm>
#include <chrono>
#include <cstdint>
#include <string>
#include <string_view>

#include "messages/registry.hpp"
#include "messages/view.hpp"

namespace infernex::router {

/// A global KV cache manager that is asked over HTTP, by the names of the v25.09 router's configuration, instead of
/// the indexers on the bus: our own indexer's `POST /match_sort` (docs/indexer-api.md).
struct kvmanager_settings {
  /// Host, with or without `http://`; without port and path, which have keys of their own.
  std::string url;
  std::uint16_t port = 8080;
  std::string match_path = "/match_sort";
  /// From the question to the whole answer; then the request is placed by load only.
  std::chrono::milliseconds timeout{1'000};
  /// Bounds `timeout`, which comes from files written for routers that nobody waited for: a gateway gives up after its
  /// route_timeout (300 ms), and a router that answers later counts as silent.
  std::chrono::milliseconds max_wait{100};
};

/// How long an answer is waited for.
inline std::chrono::milliseconds wait_of(const kvmanager_settings& settings) {
  return std::min(settings.timeout, settings.max_wait);
}

/// What is wrong with the settings, by key; both empty if nothing is.
struct kvmanager_mistake {
  std::string key;
  std::string message;
};
kvmanager_mistake find_mistake(const kvmanager_settings& settings);

/// `http://host:port/path`. Precondition: find_mistake() found none.
std::string target_of(const kvmanager_settings& settings);

/// The body that asks for all chains of a question.
std::string kvmanager_question(const fb::KvMatchQueryT& question);

/// The answer, as an indexer on the bus would have given it to a question of so many chains. Errors: not_found (the
/// manager does not know the model), overloaded, malformed_input (anything else that is no answer).
result<view<fb::KvMatchReply>> read_kvmanager_answer(unsigned status, std::string_view body, std::string_view model,
                                                     std::size_t chains);

}  // namespace infernex::router
