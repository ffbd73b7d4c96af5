#pragma once

#include "gateway/session.hpp"

namespace infernex::gateway {

/// How one engine's attempt at a request ended.
struct relayed {
  /// The client has its answer, or is gone, or its stream was broken off: nothing more to do.
  bool done = true;
  /// If not done: why, for people (`refused the connection`), and whether another engine may do better. If
  /// not, `instead` is the answer.
  std::string_view failure;
  std::optional<answer> instead;
  /// If not done: whether it is the engine's fault, so that it is passed over for a while.
  bool engine_failed = true;
};

/// Path and query of what an engine is asked for.
std::string upstream_target(const session& s, std::string_view upstream_path);
/// A streamed answer's first token has come.
void note_first_token(session& s, placed_request& place);

/// Sends the request to one engine, or to engines of a PD group (by its proxy, or from here), and passes the answer on.
/// Nothing reaches the client before the engine's whole answer (not streamed) or first event (streamed) is there.
http::task<relayed> relay(session& s, candidate to, std::string_view upstream_path);

}  // namespace infernex::gateway
