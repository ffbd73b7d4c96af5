#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include <zmq.hpp>

#include "actors/engine/stream_frames.hpp"

namespace infernex::engine {

/// One multi-part message as it came off a socket.
class zmq_frames {
 public:
  /// False: nothing there. Frames beyond a handful are read and forgotten. Throws zmq::error_t.
  bool receive(zmq::socket_t& from);
  std::vector<frame> view() const;

 private:
  std::vector<zmq::message_t> parts_;
};

/// A SUB socket on an engine's event publisher; it reconnects by itself for ever. Throws zmq::error_t.
zmq::socket_t open_live(zmq::context_t& context, const std::string& endpoint, const std::string& topic);

/// A DEALER socket with one replay request on its way. One a replay: closing it forgets what is still to
/// come. Throws zmq::error_t.
zmq::socket_t open_replay(zmq::context_t& context, const std::string& endpoint, std::uint64_t from_sequence);

}  // namespace infernex::engine
