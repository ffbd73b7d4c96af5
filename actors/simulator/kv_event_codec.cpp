#include "actors/simulator/kv_event_codec.hpp"

#include <utility>

#include <msgpuck.h>

namespace infernex::simulator {

namespace {

/// msgpack into a string. The msgpuck functions return the end of what they wrote.
class packer {
 public:
  packer& array(std::size_t size) { return put(mp_encode_array(scratch_, static_cast<std::uint32_t>(size))); }
  packer& map(std::size_t size) { return put(mp_encode_map(scratch_, static_cast<std::uint32_t>(size))); }
  packer& number(std::uint64_t value) { return put(mp_encode_uint(scratch_, value)); }
  packer& real(double value) { return put(mp_encode_double(scratch_, value)); }
  packer& nil() { return put(mp_encode_nil(scratch_)); }
  packer& text(std::string_view value) {
    put(mp_encode_strl(scratch_, static_cast<std::uint32_t>(value.size())));
    bytes_ += value;
    return *this;
  }
  std::string take() { return std::move(bytes_); }

 private:
  packer& put(const char* end) {
    bytes_.append(scratch_, static_cast<std::size_t>(end - scratch_));
    return *this;
  }
  char scratch_[16];
  std::string bytes_;
};

template <class Range>
void put_numbers(packer& out, const Range& numbers) {
  out.array(numbers.size());
  for (auto number : numbers) out.number(number);
}

void put_parent(packer& out, const blocks_stored& event) {
  if (event.parent) {
    out.number(*event.parent);
  } else {
    out.nil();
  }
}

/// One entry a block: the salt belongs to the sequence's first block only.
void put_extra_keys(packer& out, const blocks_stored& event) {
  out.array(event.hashes.size());
  for (std::size_t i = 0; i < event.hashes.size(); ++i) {
    if (i == 0) {
      out.array(1).text(event.salt);
    } else {
      out.nil();
    }
  }
}

struct array_writer {
  packer& out;
  std::uint32_t block_size;

  void operator()(const blocks_stored& event) const {
    const bool salted = !event.salt.empty();
    out.array(salted ? 9 : 8).text("BlockStored");
    put_numbers(out, event.hashes);
    put_parent(out, event);
    put_numbers(out, event.tokens);
    out.number(block_size).nil().text("GPU").nil();  // lora_id, medium, lora_name
    if (salted) put_extra_keys(out, event);
  }
  void operator()(const block_removed& event) const {
    out.array(3).text("BlockRemoved").array(1).number(event.hash).text("GPU");
  }
  void operator()(const all_blocks_cleared&) const { out.array(1).text("AllBlocksCleared"); }
};

struct map_writer {
  packer& out;
  std::uint32_t block_size;

  void operator()(const blocks_stored& event) const {
    const bool salted = !event.salt.empty();
    out.map(salted ? 11 : 10).text("type").text("BlockStored").text("block_hashes");
    put_numbers(out, event.hashes);
    out.text("parent_block_hash");
    put_parent(out, event);
    out.text("token_ids");
    put_numbers(out, event.tokens);
    out.text("block_size").number(block_size).text("lora_id").nil().text("medium").text("GPU").text("lora_name").nil();
    if (salted) {
      out.text("extra_keys");
      put_extra_keys(out, event);
    }
    out.text("group_idx").number(0).text("kv_cache_spec_kind").text("full_attention");
  }
  void operator()(const block_removed& event) const {
    out.map(4).text("type").text("BlockRemoved").text("block_hashes").array(1).number(event.hash);
    out.text("medium").text("GPU").text("group_idx").number(0);
  }
  void operator()(const all_blocks_cleared&) const { out.map(1).text("type").text("AllBlocksCleared"); }
};

}  // namespace

std::string encode_batch(std::span<const kv_event> events, const batch_options& options) {
  packer out;
  out.array(3).real(options.timestamp).array(events.size());
  for (const auto& event : events) {
    if (options.encoding == event_encoding::array) {
      std::visit(array_writer{out, options.block_size}, event);
    } else {
      std::visit(map_writer{out, options.block_size}, event);
    }
  }
  out.number(options.data_parallel_rank);
  return out.take();
}

std::string sequence_frame(std::uint64_t sequence) {
  std::string frame;
  for (int shift = 56; shift >= 0; shift -= 8) frame += static_cast<char>(sequence >> shift);
  return frame;
}

std::optional<std::uint64_t> parse_sequence_frame(std::string_view frame) {
  if (frame.size() != 8) return std::nullopt;
  std::uint64_t value = 0;
  for (char byte : frame) value = value << 8 | static_cast<unsigned char>(byte);
  return value;
}

std::vector<std::string> replay_reply(replay_framing framing, std::string_view topic, std::uint64_t sequence,
                                      std::string_view payload) {
  std::vector<std::string> frames{std::string()};
  if (framing == replay_framing::new_5_frames) frames.emplace_back(topic);
  frames.push_back(sequence_frame(sequence));
  frames.emplace_back(payload);
  return frames;
}

std::vector<std::string> replay_end(replay_framing framing) { return replay_reply(framing, {}, ~std::uint64_t{0}, {}); }

}  // namespace infernex::simulator
