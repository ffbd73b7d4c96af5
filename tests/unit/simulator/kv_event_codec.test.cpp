#include "actors/simulator/kv_event_codec.hpp"

#include <numeric>

#include <doctest/doctest.h>
#include <msgpuck.h>

using namespace infernex::simulator;

namespace {

std::string hex(std::string_view bytes) {
  static constexpr char digits[] = "0123456789abcdef";
  std::string text;
  for (char byte : bytes) {
    text += digits[static_cast<unsigned char>(byte) >> 4];
    text += digits[static_cast<unsigned char>(byte) & 15];
  }
  return text;
}

std::string encoded(const kv_event& event, event_encoding encoding) {
  return encode_batch(std::vector{event}, {.timestamp = 1757500000.25, .encoding = encoding});
}

blocks_stored first_block() {
  blocks_stored event;
  event.hashes = {12687895063098490012U};
  event.tokens.resize(16);
  std::iota(event.tokens.begin(), event.tokens.end(), 0);
  return event;
}

}  // namespace

// The expected bytes were made with Python's msgpack from vLLM's structures.
TEST_CASE("stored blocks in vLLM's two encodings") {
  CHECK(hex(encoded(first_block(), event_encoding::map)) ==
        "93cb41da305498100000918aa474797065ab426c6f636b53746f726564ac626c6f636b5f68617368657391cfb0147556276afc9cb17061"
        "72656e745f626c6f636b5f68617368c0a9746f6b656e5f696473dc0010000102030405060708090a0b0c0d0e0faa626c6f636b5f73697a"
        "6510a76c6f72615f6964c0a66d656469756da3475055a96c6f72615f6e616d65c0a967726f75705f69647800b26b765f63616368655f73"
        "7065635f6b696e64ae66756c6c5f617474656e74696f6e00");
  CHECK(hex(encoded(first_block(), event_encoding::array)) ==
        "93cb41da3054981000009198ab426c6f636b53746f72656491cfb0147556276afc9cc0dc0010000102030405060708090a0b0c0d0e0f10"
        "c0a3475055c000");
}

TEST_CASE("removed and cleared blocks in vLLM's two encodings") {
  const block_removed removed{12687895063098490012U};
  CHECK(hex(encoded(removed, event_encoding::array)) ==
        "93cb41da3054981000009193ac426c6f636b52656d6f76656491cfb0147556276afc9ca347505500");
  CHECK(hex(encoded(removed, event_encoding::map)) ==
        "93cb41da3054981000009184a474797065ac426c6f636b52656d6f766564ac626c6f636b5f68617368657391cfb0147556276afc9ca66d"
        "656469756da3475055a967726f75705f6964780000");
  CHECK(hex(encoded(all_blocks_cleared{}, event_encoding::array)) ==
        "93cb41da3054981000009191b0416c6c426c6f636b73436c656172656400");
  CHECK(hex(encoded(all_blocks_cleared{}, event_encoding::map)) ==
        "93cb41da3054981000009181a474797065b0416c6c426c6f636b73436c656172656400");
}

TEST_CASE("a parent, a salt and many events still make valid msgpack") {
  auto salted = first_block();
  salted.salt = "tenant-1";
  auto child = first_block();
  child.parent = 7;
  for (auto encoding : {event_encoding::array, event_encoding::map}) {
    const auto bytes = encode_batch(std::vector<kv_event>{salted, child, block_removed{1}}, {.encoding = encoding});
    const char* position = bytes.data();
    REQUIRE(mp_check(&position, bytes.data() + bytes.size()) == 0);
    CHECK(position == bytes.data() + bytes.size());
    // extra_keys of the salted block: one entry, a list of the salt.
    CHECK(hex(bytes).find("9191a8" + hex("tenant-1")) != std::string::npos);
  }
}

TEST_CASE("sequence frames are eight bytes, big-endian") {
  CHECK(hex(sequence_frame(258)) == "0000000000000102");
  CHECK(parse_sequence_frame(sequence_frame(0x0102030405060708)) == 0x0102030405060708);
  CHECK_FALSE(parse_sequence_frame("short"));
  CHECK_FALSE(parse_sequence_frame("much too long"));
}

TEST_CASE("replay replies without and with the topic frame") {
  using frames = std::vector<std::string>;
  const auto minus_one = std::string(8, '\xff');
  CHECK(replay_reply(replay_framing::old_4_frames, "kv@a", 3, "p") == frames{"", sequence_frame(3), "p"});
  CHECK(replay_end(replay_framing::old_4_frames) == frames{"", minus_one, ""});
  CHECK(replay_reply(replay_framing::new_5_frames, "kv@a", 3, "p") == frames{"", "kv@a", sequence_frame(3), "p"});
  CHECK(replay_end(replay_framing::new_5_frames) == frames{"", "", minus_one, ""});
}
