#include <cmath>
#include <vector>

#include <msgpuck.h>
#include <zmq.hpp>

#include "actors/simulator/kv_event_codec.hpp"
#include "tests/component/simulator/engine_fixture.hpp"

using namespace infernex;
using namespace infernex::test;
using simulator::event_encoding;
using simulator::replay_framing;

namespace {

using frames = std::vector<std::string>;

/// msgpack as JSON, which is easier to look into.
json::value decoded(const char*& at) {
  switch (mp_typeof(*at)) {
    case MP_UINT:
      return mp_decode_uint(&at);
    case MP_DOUBLE:
      return mp_decode_double(&at);
    case MP_STR: {
      std::uint32_t size = 0;
      const char* text = mp_decode_str(&at, &size);
      return json::string(text, size);
    }
    case MP_ARRAY: {
      json::array all;
      for (auto left = mp_decode_array(&at); left > 0; --left) all.push_back(decoded(at));
      return all;
    }
    case MP_MAP: {
      json::object all;
      for (auto left = mp_decode_map(&at); left > 0; --left) {
        const auto key = text_of(decoded(at));
        all[key] = decoded(at);
      }
      return all;
    }
    default:
      mp_next(&at);
      return nullptr;
  }
}

json::array batch_of(const std::string& payload) {
  const char* checked = payload.data();
  REQUIRE(mp_check(&checked, payload.data() + payload.size()) == 0);
  const char* at = payload.data();
  return decoded(at).as_array();
}

class zmq_peer {
 public:
  zmq_peer(zmq::socket_type type, const std::string& endpoint, const std::string& topic = {})
      : socket_(context_, type) {
    if (type == zmq::socket_type::sub) socket_.set(zmq::sockopt::subscribe, topic);
    socket_.set(zmq::sockopt::linger, 0);
    socket_.connect(endpoint);
  }
  void send(const frames& message) {
    for (std::size_t i = 0; i < message.size(); ++i) {
      socket_.send(zmq::buffer(message[i]), i + 1 < message.size() ? zmq::send_flags::sndmore : zmq::send_flags::none);
    }
  }
  /// Empty after the limit.
  frames receive(std::chrono::milliseconds limit = std::chrono::seconds(5)) {
    socket_.set(zmq::sockopt::rcvtimeo, static_cast<int>(limit.count()));
    frames message;
    zmq::message_t frame;
    while (socket_.recv(frame)) {
      message.push_back(frame.to_string());
      if (!frame.more()) break;
    }
    return message;
  }

 private:
  zmq::context_t context_;
  zmq::socket_t socket_;
};

/// A subscriber that hears the engine: each reset is a batch, sent until one arrives, and all of them are read.
/// Returns the next sequence it has to see.
std::uint64_t join(zmq_peer& subscriber, const engine_fixture& sim) {
  std::uint64_t resets = 0;
  frames heard;
  REQUIRE(eventually([&] {
    REQUIRE(sim.post_text("/reset_prefix_cache", "").status == 200);
    ++resets;
    heard = subscriber.receive(std::chrono::milliseconds(50));
    return !heard.empty();
  }));
  const auto last = simulator::sequence_frame(resets - 1);
  while (heard.at(1) != last) heard = subscriber.receive();
  return resets;
}

json::array ask(const engine_fixture& sim, std::string_view prompt, int max_tokens) {
  const auto answer = sim.post("/v1/completions", {{"prompt", json::string(prompt)}, {"max_tokens", max_tokens}});
  REQUIRE(answer.status == 200);
  return sim.post("/tokenize", {{"prompt", json::string(prompt)}}).parsed().at("tokens").as_array();
}

json::array first_tokens(json::array tokens, std::size_t count) {
  REQUIRE(tokens.size() >= count);
  tokens.resize(count);
  return tokens;
}

const std::string prompt_of_21_tokens(21 * 3, 'p');

}  // namespace

TEST_CASE("map events: prompt blocks, then the blocks of the answer, chained") {
  auto values = engine_fixture::fast();
  values.kv_events.topic = "kv@sim";
  const engine_fixture sim(values);
  zmq_peer subscriber(zmq::socket_type::sub, sim.engine->kv_endpoint(), "kv@");
  const auto next = join(subscriber, sim);
  const auto tokens = ask(sim, prompt_of_21_tokens, 12);

  const auto first = subscriber.receive();
  REQUIRE(first.size() == 3);
  CHECK(first[0] == "kv@sim");
  CHECK(first[1] == simulator::sequence_frame(next));
  const auto batch = batch_of(first[2]);
  REQUIRE(batch.size() == 3);
  CHECK(std::abs(batch[0].as_double() - static_cast<double>(std::time(nullptr))) < 60);
  CHECK(batch[2] == 0);
  REQUIRE(batch[1].as_array().size() == 1);
  const auto stored = batch[1].at(0).as_object();
  CHECK(stored.at("type") == "BlockStored");
  CHECK(stored.at("block_hashes").as_array().size() == 1);
  CHECK(stored.at("parent_block_hash").is_null());
  CHECK(stored.at("token_ids").as_array() == first_tokens(tokens, 16));
  CHECK(stored.at("block_size") == 16);
  CHECK(stored.at("medium") == "GPU");
  CHECK(stored.at("group_idx") == 0);
  CHECK(stored.at("kv_cache_spec_kind") == "full_attention");

  const auto second = subscriber.receive();
  REQUIRE(second.size() == 3);
  CHECK(second[1] == simulator::sequence_frame(next + 1));
  const auto decode_events = batch_of(second[2]);
  const auto answer_block = decode_events[1].at(0).as_object();
  CHECK(answer_block.at("parent_block_hash") == stored.at("block_hashes").at(0));
  CHECK(answer_block.at("token_ids").as_array().size() == 16);
  CHECK(answer_block.at("token_ids").at(0) == tokens[16]);
}

TEST_CASE("array events, as engines before 0.24 write them") {
  auto values = engine_fixture::fast();
  values.kv_events.encoding = event_encoding::array;
  values.total_blocks = 3;
  const engine_fixture sim(values);
  zmq_peer subscriber(zmq::socket_type::sub, sim.engine->kv_endpoint());
  join(subscriber, sim);
  const auto tokens = ask(sim, prompt_of_21_tokens, 1);
  const auto stored = batch_of(subscriber.receive().at(2)).at(1).at(0).as_array();
  REQUIRE(stored.size() == 8);
  CHECK(stored[0] == "BlockStored");
  CHECK(stored[3].as_array() == first_tokens(tokens, 16));
  CHECK(stored[4] == 16);

  // Another prompt needs the memory: the blocks of the first are removed.
  ask(sim, std::string(33 * 3, 'q'), 1);
  const auto events = batch_of(subscriber.receive().at(2)).at(1).as_array();
  REQUIRE(events.size() == 2);
  CHECK(events[0].as_array() == json::array{"BlockRemoved", json::array{stored[1].at(0)}, "GPU"});
  CHECK(events[1].at(0) == "BlockStored");

  REQUIRE(sim.post_text("/reset_prefix_cache", "").status == 200);
  CHECK(batch_of(subscriber.receive().at(2)).at(1).at(0).as_array() == json::array{"AllBlocksCleared"});
}

TEST_CASE("a cache salt separates prompts and stands in the event") {
  const engine_fixture sim;
  zmq_peer subscriber(zmq::socket_type::sub, sim.engine->kv_endpoint());
  join(subscriber, sim);
  const json::object salted{{"prompt", prompt_of_21_tokens}, {"max_tokens", 1}, {"cache_salt", "tenant"}};
  REQUIRE(sim.post("/v1/completions", salted).status == 200);
  const auto batch = batch_of(subscriber.receive().at(2));
  CHECK(batch[1].at(0).at("extra_keys").as_array() == json::array{json::array{"tenant"}});
  const auto plain = sim.post("/v1/completions", {{"prompt", prompt_of_21_tokens}, {"max_tokens", 1}});
  CHECK(plain.parsed().at("usage").at("prompt_tokens_details").at("cached_tokens") == 0);
  const auto again = sim.post("/v1/completions", salted);
  CHECK(again.parsed().at("usage").at("prompt_tokens_details").at("cached_tokens") == 16);
}

TEST_CASE("replay in both framings, from the start, from the middle and beyond the end") {
  for (const auto framing : {replay_framing::old_4_frames, replay_framing::new_5_frames}) {
    auto values = engine_fixture::fast();
    values.kv_events.topic = "kv@sim";
    values.kv_events.framing = framing;
    const engine_fixture sim(values);
    for (char letter = 'a'; letter < 'f'; ++letter) ask(sim, std::string(60, letter), 1);
    REQUIRE(sim.becomes("infernex_sim_kv_batches_total", 5));

    zmq_peer dealer(zmq::socket_type::dealer, sim.engine->replay_endpoint());
    const auto replay = [&](std::uint64_t start) {
      dealer.send({"", simulator::sequence_frame(start)});
      std::vector<frames> messages;
      for (;;) {
        auto message = dealer.receive();
        REQUIRE_FALSE(message.empty());
        if (message == simulator::replay_end(framing)) return messages;
        messages.push_back(std::move(message));
      }
    };
    const auto all = replay(0);
    REQUIRE(all.size() == 5);
    const std::size_t sequence_at = framing == replay_framing::old_4_frames ? 1 : 2;
    for (std::size_t i = 0; i < all.size(); ++i) {
      REQUIRE(all[i].size() == sequence_at + 2);
      CHECK(all[i][0].empty());
      if (framing == replay_framing::new_5_frames) CHECK(all[i][1] == "kv@sim");
      CHECK(all[i][sequence_at] == simulator::sequence_frame(i));
      CHECK(batch_of(all[i].back())[1].at(0).at("type") == "BlockStored");
    }
    CHECK(replay(3) == std::vector<frames>(all.begin() + 3, all.end()));
    CHECK(replay(5).empty());
    // Nonsense gets no answer and does no harm.
    dealer.send({"", "short"});
    dealer.send({"not even", "three", "frames", "at", "all"});
    CHECK(replay(4).size() == 1);
  }
}

TEST_CASE("only the last buffer_steps batches are kept for replay") {
  auto values = engine_fixture::fast();
  values.kv_events.buffer_steps = 2;
  const engine_fixture sim(values);
  for (char letter = 'a'; letter < 'f'; ++letter) ask(sim, std::string(60, letter), 1);
  REQUIRE(sim.becomes("infernex_sim_kv_batches_total", 5));
  zmq_peer dealer(zmq::socket_type::dealer, sim.engine->replay_endpoint());
  dealer.send({"", simulator::sequence_frame(0)});
  CHECK(dealer.receive().at(2) == simulator::sequence_frame(3));
  CHECK(dealer.receive().at(2) == simulator::sequence_frame(4));
  CHECK(dealer.receive() == simulator::replay_end(replay_framing::new_5_frames));
}

TEST_CASE("events can be off") {
  auto values = engine_fixture::fast();
  values.kv_events.enabled = false;
  const engine_fixture sim(values);
  CHECK(sim.engine->kv_endpoint().empty());
  CHECK(sim.engine->replay_endpoint().empty());
  ask(sim, prompt_of_21_tokens, 1);
  CHECK_FALSE(sim.metric("infernex_sim_kv_batches_total"));
}
