#pragma once

#include <cstdint>
#include <string>
#include <string_view>

namespace infernex {

/// Every way a part of InferNex can fail. Values are stable: they appear in logs and metrics.
enum class errc : std::uint8_t {
  none = 0,
  /// A buffer is not a valid FlatBuffers message of the expected type.
  malformed_message,
  /// A buffer carries the file identifier of another message, or of none we know.
  wrong_message_type,
  /// A subject has the wrong number of tokens, or a token with a bad escape.
  malformed_subject,
  /// Bytes from an engine (KV event, metrics page, JSON answer) do not parse.
  malformed_input,
  /// A request from a client is not valid.
  invalid_request,
  /// The named thing (model, engine, key, file) does not exist.
  not_found,
  /// A queue, mailbox or credit is full.
  overloaded,
  /// Nobody listens on the subject or the address.
  unreachable,
  /// The peer closed or broke the connection in the middle.
  connection_lost,
  /// The deadline passed.
  timed_out,
  /// Whoever asked is gone.
  cancelled,
  /// The NATS connection is down.
  bus_down,
  /// A body, header or line is over its bound.
  too_large,
  /// A configuration is not valid.
  invalid_config,
  /// The operating system refused.
  system_error,
};

/// The name of an error as metrics label and log field, e.g. `timed_out`.
std::string_view name(errc code);

/// A sentence for people.
std::string_view describe(errc code);

/// An error with what it was about.
struct error {
  errc code = errc::none;
  std::string detail;

  friend bool operator==(const error&, const error&) = default;
};

/// `timed_out: the deadline passed (engine http://… /health)`.
std::string render(const error& problem);

}  // namespace infernex
