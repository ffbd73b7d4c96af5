#include "actors/engine/kv_event_decoder.hpp"

#include <numeric>

#include <doctest/doctest.h>

#include "tests/unit/engine/decoded_batches.hpp"

namespace {

using namespace infernex;
using namespace infernex::engine;
using test::batch_of;
using test::decoded;
using test::golden_hash;
using test::msgpack_writer;
using test::unhex;

stored_blocks golden_stored() {
  stored_blocks blocks;
  blocks.hashes = {golden_hash};
  blocks.tokens.resize(16);
  std::iota(blocks.tokens.begin(), blocks.tokens.end(), 0U);
  blocks.block_size = 16;
  return blocks;
}

TEST_CASE("golden payloads of both encodings give the same events") {
  const auto map_stored =
      decoded(unhex("93cb41da305498100000918aa474797065ab426c6f636b53746f726564ac626c6f636b5f68617368657391cfb014755627"
                    "6afc9cb1706172656e"
                    "745f626c6f636b5f68617368c0a9746f6b656e5f696473dc0010000102030405060708090a0b0c0d0e0faa626c6f636b5f"
                    "73697a6510a76c6f72"
                    "615f6964c0a66d656469756da3475055a96c6f72615f6e616d65c0a967726f75705f69647800b26b765f63616368655f73"
                    "7065635f6b696e64ae"
                    "66756c6c5f617474656e74696f6e00"));
  REQUIRE(map_stored.events.size() == 1);
  auto expected = golden_stored();
  expected.group = 0;
  expected.attention_kind = "full_attention";
  CHECK(map_stored.events[0] == kv_event(expected));
  CHECK(map_stored.data_parallel_rank == 0);

  const auto array_stored =
      decoded(unhex("93cb41da3054981000009198ab426c6f636b53746f72656491cfb0147556276afc9cc0dc0010000102030405060708090a"
                    "0b0c0d0e0f10c0a3"
                    "475055c000"));
  REQUIRE(array_stored.events.size() == 1);
  CHECK(array_stored.events[0] == kv_event(golden_stored()));

  const auto array_removed =
      decoded(unhex("93cb41da3054981000009193ac426c6f636b52656d6f76656491cfb0147556276afc9ca347505500"));
  REQUIRE(array_removed.events.size() == 1);
  CHECK(array_removed.events[0] == kv_event(removed_blocks{{golden_hash}, fb::KvTier::Device, std::nullopt}));

  const auto map_removed = decoded(unhex(
      "93cb41da3054981000009184a474797065ac426c6f636b52656d6f766564ac626c6f636b5f68617368657391cfb0147556276afc9ca66d65"
      "6469756da3475055a967726f75705f6964780000"));
  REQUIRE(map_removed.events.size() == 1);
  CHECK(map_removed.events[0] == kv_event(removed_blocks{{golden_hash}, fb::KvTier::Device, 0}));

  for (const auto* hex : {"93cb41da3054981000009191b0416c6c426c6f636b73436c656172656400",
                          "93cb41da3054981000009181a474797065b0416c6c426c6f636b73436c656172656400"}) {
    const auto cleared = decoded(unhex(hex));
    REQUIRE(cleared.events.size() == 1);
    CHECK(cleared.events[0] == kv_event(all_cleared{}));
  }
}

TEST_CASE("one bad event is left out with a reason, its batch is not lost") {
  auto w = batch_of(6);
  test::write_stored(w, {1}, std::nullopt, test::tokens_from(0, 4), 4);
  w.array(2).text("BlockStored").text("no hashes");
  test::write_stored(w, {2}, 1, test::tokens_from(0, 3), 4);  // a token too few
  w.array(1).text("BlockPinned");
  w.number(7);
  test::write_removed(w, {1});
  w.number(0);
  const auto batch = decoded(w.bytes());
  REQUIRE(batch.events.size() == 2);
  CHECK(std::holds_alternative<stored_blocks>(batch.events[0]));
  CHECK(std::holds_alternative<removed_blocks>(batch.events[1]));
  CHECK(batch.dropped[drop_reason::malformed_event] == 3);
  CHECK(batch.dropped[drop_reason::unknown_event] == 1);
  CHECK(batch.first_problem == "event 1: BlockStored: block_hashes is no list of hashes");
}

TEST_CASE("every truncation of a payload is an error, and so are bytes after it") {
  auto w = batch_of(1);
  test::write_stored(w, {1, 2}, std::nullopt, test::tokens_from(0, 8), 4);
  w.number(0);
  for (std::size_t size = 0; size < w.bytes().size(); ++size) {
    const auto batch = decode_kv_events(std::span(w.bytes()).first(size));
    REQUIRE_FALSE(batch.ok());
    CHECK(batch.failure().code == errc::malformed_input);
  }
  auto longer = w.bytes();
  longer.push_back(0xc0);
  CHECK_FALSE(decode_kv_events(longer).ok());
}

TEST_CASE("payloads that are msgpack but no batch are errors") {
  CHECK_FALSE(decode_kv_events(msgpack_writer().number(1).bytes()).ok());
  CHECK_FALSE(decode_kv_events(msgpack_writer().array(1).real(1).bytes()).ok());
  CHECK_FALSE(decode_kv_events(msgpack_writer().array(2).real(1).text("events").bytes()).ok());
  CHECK_FALSE(decode_kv_events(msgpack_writer().map(0).bytes()).ok());
  const auto huge = decode_kv_events(std::vector<std::uint8_t>(max_batch_bytes + 1));
  REQUIRE_FALSE(huge.ok());
  CHECK(huge.failure().code == errc::too_large);
}

TEST_CASE("a forged count cannot lead a reader outside the payload") {
  // A map that claims 0xdfdfc000 pairs; found by the fuzzer.
  CHECK_FALSE(decode_kv_events(
                  unhex("93cb41da30549810caf89198ab426c6f636b53746f72656491cfb0147556276afc9cc0dc001000000000000000"
                        "0908090a0b0c0d0e0f2fc0a3475055dfdfdfc000"))
                  .ok());
  for (const auto* header : {"dd7fffffff", "ddffffffff", "df40000000", "df80000000", "dfffffffff", "dcffff", "deffff",
                             "c6ffffffff", "dbffffffff", "c9ffffffff"}) {
    CAPTURE(header);
    auto payload = unhex(header);
    payload.resize(payload.size() + 64);
    const auto batch = decode_kv_events(payload);
    REQUIRE_FALSE(batch.ok());
    CHECK(batch.failure().detail.find("truncated or invalid") != std::string::npos);
  }
}

TEST_CASE("every type msgpack has is stepped over where it is not wanted") {
  for (const auto* hex : {"c2",
                          "c3",
                          "c4020102",
                          "c500020102",
                          "c60000000201ff",
                          "c7010203",
                          "c800010203",
                          "c90000000102ff",
                          "ca00000000",
                          "cb0000000000000000",
                          "cc00",
                          "cd0000",
                          "ce00000000",
                          "cf0000000000000000",
                          "d000",
                          "d10000",
                          "d200000000",
                          "d30000000000000000",
                          "d40101",
                          "d5010101",
                          "d60101010101",
                          "d7010101010101010101",
                          "d80101010101010101010101010101010101",
                          "d90161",
                          "da000161",
                          "db0000000161",
                          "dc000101",
                          "dd0000000101",
                          "de00010101",
                          "df000000010101",
                          "e0",
                          "7f",
                          "a161",
                          "9101",
                          "810102"}) {
    CAPTURE(hex);
    auto payload = unhex("9400");  // [0, [cleared], nil, <the value>]
    const auto rest = unhex("9191b0416c6c426c6f636b73436c6561726564c0");
    payload.insert(payload.end(), rest.begin(), rest.end());
    const auto value = unhex(hex);
    payload.insert(payload.end(), value.begin(), value.end());
    const auto batch = decode_kv_events(payload);
    REQUIRE(batch.ok());
    CHECK(batch->events.size() == 1);
  }
  CHECK_FALSE(decode_kv_events(unhex("9400c0c0c1")).ok());
}

TEST_CASE("envelopes of other shapes: a map, two elements, four elements, SGLang's name of the rank") {
  const auto map = decoded(msgpack_writer()
                               .map(3)
                               .text("events")
                               .array(1)
                               .array(1)
                               .text("AllBlocksCleared")
                               .text("ts")
                               .real(1757500000.25)
                               .text("attn_dp_rank")
                               .number(3)
                               .bytes());
  CHECK(map.events.size() == 1);
  CHECK(map.data_parallel_rank == 3);
  const auto two = decoded(msgpack_writer().array(2).real(1757500000.25).array(0).bytes());
  CHECK(two.events.empty());
  CHECK_FALSE(two.data_parallel_rank.has_value());
  const auto four =
      decoded(msgpack_writer().array(4).real(1757500000.25).array(0).nil().binary("0123456789abcdef").bytes());
  CHECK_FALSE(four.data_parallel_rank.has_value());
  REQUIRE(four.publisher.has_value());
  CHECK(std::string(four.publisher->begin(), four.publisher->end()) == "0123456789abcdef");
  const auto five = decoded(
      msgpack_writer().array(5).real(1757500000.25).array(0).number(1).binary("0123456789abcdef").text("more").bytes());
  CHECK(five.data_parallel_rank == 1);
  CHECK(five.publisher == four.publisher);
}

TEST_CASE("a publisher is found without decoding the batch") {
  const auto in = [](const msgpack_writer& w) { return find_publisher(w.bytes()); };
  const std::string id = "0123456789abcdef";
  CHECK(in(msgpack_writer().array(4).real(1).array(0).number(0).binary(id)).has_value());
  CHECK(in(msgpack_writer().map(2).text("events").array(0).text("publisher_id").binary(id)).has_value());
  CHECK_FALSE(in(msgpack_writer().array(3).real(1).array(0).number(0)).has_value());
  CHECK_FALSE(in(msgpack_writer().array(4).real(1).array(0).number(0).nil()).has_value());
  CHECK_FALSE(in(msgpack_writer().array(4).real(1).array(0).number(0).binary("too short")).has_value());
  CHECK_FALSE(find_publisher({}).has_value());
  CHECK_FALSE(find_publisher(unhex("94cb")).has_value());
}

TEST_CASE("array and map events may be mixed in one batch; which were seen is counted") {
  auto w = batch_of(4);
  w.array(1).text("AllBlocksCleared");
  w.map(2).text("type").text("AllBlocksCleared").text("reason").array(2).map(1).number(1).nil().nil();  // unknown
  w.array(3).text("AllBlocksCleared").nil().array(1).array(1).text("more");
  w.text("no event");
  w.number(0);
  const auto batch = decoded(w.bytes());
  CHECK(batch.events.size() == 3);
  CHECK(batch.forms[wire_form::batch_array] == 1);
  CHECK(batch.forms[wire_form::batch_map] == 0);
  CHECK(batch.forms[wire_form::event_array] == 2);
  CHECK(batch.forms[wire_form::event_map] == 1);
  CHECK(batch.dropped[drop_reason::malformed_event] == 1);
  CHECK(name(wire_form::event_map) == "event_map");
  for (std::size_t i = 0; i < wire_forms; ++i) CHECK(name(static_cast<wire_form>(i)) != "unknown");
}

TEST_CASE("a map event as vLLM 0.26 sent it, its header longer than need be") {
  // Captured: map16 though there are ten keys, required fields as nil, a nil for the one block's extra keys.
  std::vector<std::uint8_t> bytes = unhex(
      "93cb41da305498100000"
      "91"
      "de000a");
  const auto add = [&bytes](const msgpack_writer& w) { bytes.insert(bytes.end(), w.bytes().begin(), w.bytes().end()); };
  add(msgpack_writer().text("type").text("BlockStored").text("block_hashes").numbers({15760518052499183552ULL}));
  add(msgpack_writer().text("parent_block_hash").nil().text("token_ids").numbers(test::tokens_from(0, 16)));
  add(msgpack_writer().text("block_size").number(16).text("lora_id").nil().text("medium").text("GPU"));
  add(msgpack_writer().text("extra_keys").array(1).nil().text("group_idx").number(0));
  add(msgpack_writer().text("kv_cache_spec_kind").text("full_attention").number(0));
  const auto batch = decoded(bytes);
  REQUIRE(batch.events.size() == 1);
  auto expected = golden_stored();
  expected.hashes = {15760518052499183552ULL};
  expected.group = 0;
  expected.attention_kind = "full_attention";
  CHECK(batch.events[0] == kv_event(expected));
}

TEST_CASE("missing trailing elements, more fields than are kept, an encoder's signed integers") {
  auto w = batch_of(2);
  w.array(5).text("BlockStored").numbers({7}).nil().numbers({1, 2}).number(2);  // vLLM's first form
  w.map(43);
  for (int i = 0; i < 40; ++i) w.text("new" + std::to_string(i)).array(1).number(1);
  w.text("type").text("AllBlocksCleared").number(4).number(5).text("x").nil();
  w.number(0);
  const auto batch = decoded(w.bytes());
  REQUIRE(batch.events.size() == 1);
  CHECK(std::get<stored_blocks>(batch.events[0]).tokens == std::vector<std::uint32_t>{1, 2});
  CHECK(batch.dropped[drop_reason::malformed_event] == 1);  // its type came too late: that event alone is lost

  // [0, [["BlockStored", [1], nil, [int8 5, int16 300, int32 70000, int64 1, uint64 2, uint8 200], 6]], 0]
  const auto integers = decode_kv_events(unhex(
      "93009195ab426c6f636b53746f7265649101c096d005d1012cd200011170d30000000000000001cf0000000000000002ccc80600"));
  REQUIRE(integers.ok());
  REQUIRE(integers->events.size() == 1);
  CHECK(std::get<stored_blocks>(integers->events[0]).tokens == std::vector<std::uint32_t>{5, 300, 70000, 1, 2, 200});
}
}  // namespace
