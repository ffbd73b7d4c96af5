#include "actors/engine/stream_frames.hpp"

#include <string>

#include <doctest/doctest.h>

namespace {

using namespace infernex::engine;
using bytes = std::vector<std::uint8_t>;

const bytes nothing;
const bytes topic{'k', 'v'};
const bytes payload{0x90};
const bytes end_sequence(8, 0xff);

TEST_CASE("a live message is topic, sequence and payload") {
  const auto sequence = replay_request(0x0102030405060708ULL);
  CHECK(sequence == bytes{1, 2, 3, 4, 5, 6, 7, 8});
  const std::vector<frame> frames{topic, sequence, payload};
  const auto batch = parse_live(frames);
  REQUIRE(batch.ok());
  CHECK(batch->sequence == 0x0102030405060708ULL);
  CHECK(batch->payload.size() == 1);
  CHECK_FALSE(parse_live(std::vector<frame>{topic, payload}).ok());
  CHECK_FALSE(parse_live(std::vector<frame>{topic, payload, payload}).ok());
}

TEST_CASE("replay answers of both framings, told apart by the number of frames") {
  const auto sequence = replay_request(7);
  for (const auto& frames :
       {std::vector<frame>{nothing, sequence, payload}, std::vector<frame>{nothing, topic, sequence, payload},
        std::vector<frame>{nothing, nothing, sequence, payload}}) {
    const auto batch = parse_replayed(frames);
    REQUIRE(batch.ok());
    CHECK_FALSE(batch->end);
    CHECK(batch->sequence == 7);
  }
  for (const auto& frames : {std::vector<frame>{nothing, end_sequence, nothing},
                             std::vector<frame>{nothing, nothing, end_sequence, nothing}}) {
    const auto batch = parse_replayed(frames);
    REQUIRE(batch.ok());
    CHECK(batch->end);
  }
  CHECK_FALSE(parse_replayed(std::vector<frame>{payload}).ok());
  CHECK_FALSE(parse_replayed(std::vector<frame>{nothing, topic, topic, sequence, payload}).ok());
  CHECK_FALSE(parse_replayed(std::vector<frame>{nothing, topic, payload}).ok());
}

}  // namespace
