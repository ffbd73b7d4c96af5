#include "actors/runtime/ask_announcements.hpp"

#include "actors/runtime/bus.hpp"

namespace infernex {

errc ask_announcements(bus& messages, std::string_view source, std::uint64_t epoch) {
  fb::AnnounceRequestT request;
  request.origin = std::make_unique<fb::OriginT>();
  request.origin->id = source;
  request.origin->epoch = epoch;
  return messages.publish(messages.names().announce_request(), encode(request), lane::rpc);
}

}  // namespace infernex
