#include "actors/engine/kv_sockets.hpp"

#include "actors/engine/kv_event_decoder.hpp"

namespace infernex::engine {

namespace {

constexpr std::size_t max_frames = 8;
/// Batches that wait in the socket while a replay runs; source_state remembers more than that.
constexpr int live_high_water = 10'000;
/// No bound here: an engine sends all it keeps (vLLM: 10,000 batches) in one go through a ROUTER, which drops what a
/// slow reader has no room for. What a replay may bring is bounded by what the engine keeps and by its time, and how
/// many run by replay_permits.
constexpr int replay_high_water = 0;

void common_options(zmq::socket_t& socket) {
  socket.set(zmq::sockopt::linger, 0);
  socket.set(zmq::sockopt::maxmsgsize, static_cast<std::int64_t>(max_batch_bytes));
  socket.set(zmq::sockopt::reconnect_ivl, 100);
  socket.set(zmq::sockopt::reconnect_ivl_max, 1'000);
  socket.set(zmq::sockopt::connect_timeout, 2'000);
  // An engine's machine that vanished without a word is noticed by these.
  socket.set(zmq::sockopt::heartbeat_ivl, 5'000);
  socket.set(zmq::sockopt::heartbeat_timeout, 15'000);
}

}  // namespace

bool zmq_frames::receive(zmq::socket_t& from) {
  parts_.clear();
  bool more = true;
  while (more) {
    zmq::message_t part;
    // After the first part the others are there: ZMQ delivers messages whole.
    if (!from.recv(part, zmq::recv_flags::dontwait)) return false;
    more = part.more();
    if (parts_.size() < max_frames) parts_.push_back(std::move(part));
  }
  return true;
}

std::vector<frame> zmq_frames::view() const {
  std::vector<frame> frames;
  frames.reserve(parts_.size());
  for (const auto& part : parts_) frames.emplace_back(part.data<std::uint8_t>(), part.size());
  return frames;
}

zmq::socket_t open_live(zmq::context_t& context, const std::string& endpoint, const std::string& topic) {
  zmq::socket_t socket(context, zmq::socket_type::sub);
  common_options(socket);
  socket.set(zmq::sockopt::rcvhwm, live_high_water);
  socket.set(zmq::sockopt::subscribe, topic);
  socket.connect(endpoint);
  return socket;
}

zmq::socket_t open_replay(zmq::context_t& context, const std::string& endpoint, std::uint64_t from_sequence) {
  zmq::socket_t socket(context, zmq::socket_type::dealer);
  common_options(socket);
  socket.set(zmq::sockopt::rcvhwm, replay_high_water);
  socket.connect(endpoint);
  const auto request = replay_request(from_sequence);
  // Delimiter and sequence. A DEALER, since a REQ would take one answer only.
  socket.send(zmq::message_t(), zmq::send_flags::sndmore | zmq::send_flags::dontwait);
  socket.send(zmq::buffer(request), zmq::send_flags::dontwait);
  return socket;
}

}  // namespace infernex::engine
