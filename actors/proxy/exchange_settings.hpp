#pragma once

#include <chrono>
#include <cstdint>

namespace infernex::proxy {

struct conversation_settings {
  /// Pairs tried for one request, migrations apart; and of these, before decode is to prefill by itself.
  std::uint32_t max_attempts = 3;
  std::uint32_t max_prefill_attempts = 2;
  /// Times a half-finished answer goes to another pair.
  std::uint32_t max_migrations = 3;
  bool local_prefill = true;
};

struct exchange_settings {
  conversation_settings tries;
  /// How long a request may wait, all in all, for a pair where there is none: engines that have gone may come back.
  std::chrono::milliseconds pair_wait{2'000};
  std::chrono::milliseconds connect_timeout{1'000};
  /// For a prefill engine's whole answer.
  std::chrono::milliseconds prefill_timeout{30'000};
  /// For a decode engine's first token, after it was sent the request; with concurrent protocols that is prefill too.
  std::chrono::milliseconds first_token_timeout{60'000};
  std::chrono::milliseconds stream_idle_timeout{60'000};
  /// For the whole answer, or, of a stream, for its first token.
  std::chrono::milliseconds timeout{120'000};
  /// How long a decode engine may take to let go of stranded blocks.
  std::chrono::milliseconds release_timeout{1'000};
  std::uint64_t max_answer_bytes = 64ULL << 20;
};

}  // namespace infernex::proxy
