#include "actors/engine/kv_event_fields.hpp"

#include <string>
#include <utility>
#include <vector>

#include <doctest/doctest.h>

#include "tests/unit/engine/decoded_batches.hpp"

namespace {

using namespace infernex;
using namespace infernex::engine;
using test::batch_of;
using test::decoded;
using test::golden_hash;
using test::msgpack_writer;

TEST_CASE("token ids: pairs count as their first, anything else is malformed") {
  auto w = batch_of(4);
  w.array(5).text("BlockStored").numbers({7}).nil().array(2).numbers({11, 12}).numbers({12, 13}).number(2);
  w.array(5).text("BlockStored").numbers({7}).nil().array(2).numbers({11, 12, 13}).number(1).number(2);
  w.array(5).text("BlockStored").numbers({7}).nil().array(2).number(1).negative(-1).number(2);
  w.array(5).text("BlockStored").numbers({7}).nil().array(2).number(1).number(1ULL << 32).number(2);
  w.number(0);
  const auto batch = decoded(w.bytes());
  REQUIRE(batch.events.size() == 1);
  CHECK(std::get<stored_blocks>(batch.events[0]).tokens == std::vector<std::uint32_t>{11, 12});
  CHECK(batch.dropped[drop_reason::malformed_event] == 3);
}

TEST_CASE("blocks that are larger than any engine has are refused") {
  for (const std::uint32_t size : {65'536U, 65'537U}) {
    auto w = batch_of(1);
    test::write_stored(w, {1}, std::nullopt, {}, size);
    const auto batch = decoded(w.number(0).bytes());
    CHECK(batch.events.size() == (size == 65'536 ? 1 : 0));
    CHECK(batch.dropped[drop_reason::malformed_event] == (size == 65'536 ? 0 : 1));
  }
}

TEST_CASE("hashes: integers, negative integers, digests by their last 8 bytes") {
  auto w = batch_of(2);
  w.array(2).text("BlockRemoved").array(3);
  w.number(5).negative(-2).binary(std::string("\x4e\x11", 2) + std::string(22, 'x') +
                                  std::string("\xb0\x14\x75\x56\x27\x6a\xfc\x9c"));
  w.array(2).text("BlockRemoved").array(1).binary("short");
  w.nil();
  const auto batch = decoded(w.bytes());
  REQUIRE(batch.events.size() == 1);
  CHECK(std::get<removed_blocks>(batch.events[0]).hashes ==
        std::vector<std::uint64_t>{5, 0xfffffffffffffffeULL, golden_hash});
  CHECK(batch.dropped[drop_reason::malformed_event] == 1);
}

TEST_CASE("every medium of vLLM and SGLang is a tier, in either case; one we do not know is counted") {
  const std::vector<std::pair<const char*, fb::KvTier>> media{
      {"GPU", fb::KvTier::Device},   {"gpu", fb::KvTier::Device},    {"NPU", fb::KvTier::Device},
      {"CPU", fb::KvTier::Host},     {"cpu", fb::KvTier::Host},      {"CPU_PINNED", fb::KvTier::Host},
      {"STORAGE", fb::KvTier::Disk}, {"storage", fb::KvTier::Disk},  {"DISK", fb::KvTier::Disk},
      {"disk", fb::KvTier::Disk},    {"EXTERNAL", fb::KvTier::Disk}, {"external", fb::KvTier::Disk}};
  auto w = batch_of(static_cast<std::uint32_t>(media.size()) + 3);
  for (const auto& [medium, tier] : media) w.array(3).text("BlockRemoved").numbers({1}).text(medium);
  w.array(2).text("BlockRemoved").numbers({1});  // before media had names
  w.array(3).text("BlockRemoved").numbers({1}).text("MOON");
  w.array(3).text("BlockRemoved").numbers({1}).number(4);
  w.number(0);
  const auto batch = decoded(w.bytes());
  REQUIRE(batch.events.size() == media.size() + 1);
  for (std::size_t i = 0; i < media.size(); ++i) {
    CAPTURE(media[i].first);
    CHECK(std::get<removed_blocks>(batch.events[i]).tier == media[i].second);
  }
  CHECK(std::get<removed_blocks>(batch.events.back()).tier == fb::KvTier::Device);
  CHECK(batch.dropped[drop_reason::unknown_medium] == 2);
}

TEST_CASE("what is kept on another machine counts as disk, stored and removed alike") {
  const auto removed = [](const char* medium, const char* locality) {
    auto w = batch_of(1);
    w.map(4).text("type").text("BlockRemoved").text("block_hashes").numbers({1}).text("medium").text(medium);
    w.text("locality").text(locality).number(0);
    return decoded(w.bytes());
  };
  const auto tier = [](const kv_event_batch& batch) {
    REQUIRE(batch.events.size() == 1);
    return std::get<removed_blocks>(batch.events[0]).tier;
  };
  CHECK(tier(removed("CPU", "LOCAL")) == fb::KvTier::Host);
  CHECK(tier(removed("CPU", "REMOTE")) == fb::KvTier::Disk);
  CHECK(tier(removed("STORAGE", "remote")) == fb::KvTier::Disk);
  CHECK(removed("CPU", "ORBIT").dropped[drop_reason::unknown_medium] == 1);
  CHECK(removed("MOON", "REMOTE").dropped[drop_reason::unknown_medium] == 1);

  auto w = batch_of(1);
  w.map(6).text("type").text("BlockStored").text("block_hashes").numbers({1}).text("token_ids").array(0);
  w.text("block_size").number(0).text("locality").text("REMOTE").text("ownership").text("store-1").number(0);
  const auto batch = decoded(w.bytes());
  REQUIRE(batch.events.size() == 1);
  CHECK(std::get<stored_blocks>(batch.events[0]).tier == fb::KvTier::Disk);
}

/// One BlockStored of two 2-token blocks with these extra keys, by position.
stored_blocks with_extra_keys(const msgpack_writer& extra_keys, bool has_parent, const char* lora = nullptr) {
  auto w = batch_of(1);
  w.array(9).text("BlockStored").numbers({1, 2});
  has_parent ? w.number(9) : w.nil();
  w.numbers({10, 11, 12, 13}).number(2).nil().nil();
  lora ? w.text(lora) : w.nil();
  auto bytes = w.bytes();
  bytes.insert(bytes.end(), extra_keys.bytes().begin(), extra_keys.bytes().end());
  bytes.push_back(0);
  auto batch = decoded(bytes);
  REQUIRE(batch.events.size() == 1);
  return std::get<stored_blocks>(batch.events[0]);
}

TEST_CASE("extra keys: the salt at the start, the adapter's name left out, images kept a block") {
  const auto salted =
      with_extra_keys(msgpack_writer().array(2).array(2).text("ada").text("salt-1").array(1).text("ada"), false, "ada");
  CHECK(salted.adapter == "ada");
  CHECK(salted.salt == "salt-1");
  CHECK(salted.extras.empty());

  const auto image = with_extra_keys(msgpack_writer().array(2).nil().array(1).array(2).text("img").number(4), false);
  CHECK(image.salt.empty());
  REQUIRE(image.extras.size() == 2);
  CHECK(image.extras[0].empty());
  CHECK_FALSE(image.extras[1].empty());

  const auto later = with_extra_keys(msgpack_writer().array(2).array(1).text("img").nil(), true);
  CHECK(later.salt.empty());
  REQUIRE(later.extras.size() == 2);
  CHECK(later.extras[0] == image.extras[1]);  // a bare identifier and one with an offset are the same image

  const auto typed = with_extra_keys(msgpack_writer()
                                         .array(1)
                                         .array(2)
                                         .map(2)
                                         .text("type")
                                         .text("cache_salt")
                                         .text("salt")
                                         .text("s2")
                                         .map(2)
                                         .text("type")
                                         .text("mm")
                                         .text("hash")
                                         .text("img"),
                                     false);
  CHECK(typed.salt == "s2");
  REQUIRE(typed.extras.size() == 2);
  CHECK(typed.extras[0] == image.extras[1]);

  const auto legacy = with_extra_keys(
      msgpack_writer().array(1).array(1).map(2).text("type").text("legacy").text("value").text("s4"), false);
  CHECK(legacy.salt == "s4");

  const auto embeds = with_extra_keys(msgpack_writer().array(2).array(1).binary("digest").nil(), false);
  CHECK(embeds.salt.empty());
  REQUIRE(embeds.extras.size() == 2);
  CHECK_FALSE(embeds.extras[0].empty());
  CHECK(embeds.extras[0] != image.extras[1]);
  const auto typed_embeds = with_extra_keys(
      msgpack_writer().array(1).array(1).map(2).text("type").text("prompt_embeds").text("hash").binary("digest"),
      false);
  CHECK(typed_embeds.extras == embeds.extras);
}

TEST_CASE("SGLang's salt: a map by position, or a field of its own, at the start of a prompt only") {
  CHECK(with_extra_keys(msgpack_writer().map(1).text("cache_salt").text("s3"), false).salt == "s3");
  CHECK(with_extra_keys(msgpack_writer().map(1).text("cache_salt").text("s3"), true).salt.empty());
  auto w = batch_of(2);
  w.array(8).text("BlockStored").numbers({1}).nil().numbers({10, 11}).number(2).nil().text("GPU");
  w.map(1).text("cache_salt").text("s5");  // in the place of the adapter's name
  w.map(6).text("type").text("BlockStored").text("block_hashes").numbers({1}).text("token_ids").numbers({10, 11});
  w.text("block_size").number(2).text("cache_salt").text("s6").text("session_id").text("x");
  w.number(0);
  const auto batch = decoded(w.bytes());
  REQUIRE(batch.events.size() == 2);
  CHECK(std::get<stored_blocks>(batch.events[0]).salt == "s5");
  CHECK(std::get<stored_blocks>(batch.events[0]).adapter.empty());
  CHECK(std::get<stored_blocks>(batch.events[1]).salt == "s6");
}

TEST_CASE("a copy on another tier may come without tokens, a sparse group with any number") {
  auto w = batch_of(2);
  w.array(7).text("BlockStored").numbers({1, 2}).nil().array(0).number(0).nil().text("CPU");
  w.array(11)
      .text("BlockStored")
      .numbers({1})
      .nil()
      .numbers({1, 2, 3})
      .number(2)
      .nil()
      .nil()
      .nil()
      .nil()
      .number(1)
      .text("mamba");
  w.number(0);
  const auto batch = decoded(w.bytes());
  REQUIRE(batch.events.size() == 2);
  CHECK(std::get<stored_blocks>(batch.events[0]).tier == fb::KvTier::Host);
  CHECK(std::get<stored_blocks>(batch.events[0]).tokens.empty());
  CHECK(std::get<stored_blocks>(batch.events[1]).group == 1);
  CHECK(std::get<stored_blocks>(batch.events[1]).attention_kind == "mamba");
}
}  // namespace
