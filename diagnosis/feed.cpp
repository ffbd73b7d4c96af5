#include "diagnosis/feed.hpp"

#include "messages/view.hpp"

namespace infernex::diagnosis {

error feed(engine& into, std::span<const std::uint8_t> message, millis now) {
  const auto* kind = find_root_table(message);
  if (kind == nullptr) return {errc::wrong_message_type, "not a message of ours"};
  if (auto problem = verify_message(message, *kind); problem.code != errc::none) return problem;
  if (kind->root == message_traits<fb::HwSample>::root) {
    monitor::node_sample sample;
    monitor::unpack(*flatbuffers::GetRoot<fb::HwSample>(message.data()), sample);
    into.on_sample(sample, now);
  } else if (kind->root == message_traits<fb::HwEvent>::root) {
    fb::HwEventT event;
    flatbuffers::GetRoot<fb::HwEvent>(message.data())->UnPackTo(&event);
    into.on_event(event, now);
  } else if (kind->root == message_traits<fb::HwInventory>::root) {
    fb::HwInventoryT inventory;
    flatbuffers::GetRoot<fb::HwInventory>(message.data())->UnPackTo(&inventory);
    into.on_inventory(inventory, now);
  } else {
    return {errc::wrong_message_type, std::string(kind->root)};
  }
  return {};
}

}  // namespace infernex::diagnosis
