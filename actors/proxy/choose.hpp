#pragma once

#include <optional>
#include <string>
#include <variant>

#include "actors/proxy/conversation.hpp"
#include "actors/proxy/group.hpp"

namespace infernex::proxy {

/// vllm-ascend's published load scores, in thousandths: what a prompt of so many bytes costs a prefill engine
/// (0.0345 a token of 4 bytes, and 120.0745), and a decode engine (its bytes).
std::int64_t prefill_score(std::size_t prompt_bytes);
std::int64_t decode_score(std::size_t prompt_bytes);

/// Counts a request at a pair's engines while it lives.
class pair_charge {
 public:
  pair_charge() = default;
  pair_charge(std::shared_ptr<engine_load> prefill, std::shared_ptr<engine_load> decode, std::size_t prompt_bytes);
  pair_charge(pair_charge&& other) noexcept { *this = std::move(other); }
  pair_charge& operator=(pair_charge&& other) noexcept;
  ~pair_charge() { release(); }

  /// The pair's one trial is this request: another may follow once it is over.
  void hold_trial(std::shared_ptr<std::atomic<bool>> trial) { trial_ = std::move(trial); }
  /// Prefill has answered: it no longer computes, but holds the blocks.
  void prefilled();
  /// Decode has begun to answer: it has fetched them.
  void fetched();

 private:
  void release();
  std::shared_ptr<engine_load> prefill_;
  std::shared_ptr<engine_load> decode_;
  std::shared_ptr<std::atomic<bool>> trial_;
  std::int64_t active_ = 0;
  std::int64_t held_ = 0;
  std::int64_t decoding_ = 0;
};

/// What a request says of where it goes: `x-prefiller-host-port` (llm-d, openFuyao) and `x-decoder-host-port`, each an
/// address or several with commas, the first that can take it counts.
struct named_pair {
  std::string prefill;
  std::string decode;
  /// `x-prefiller-host-port: none`: on the first attempt the decode engine computes the prompt too.
  bool alone = false;
};
named_pair read_names(std::string_view prefill, std::string_view decode);

struct chosen_pair {
  engine_pair pair;
  fb::KvProtocol protocol = fb::KvProtocol::None;
  pair_charge charge;
};

/// Why there is no pair.
struct no_pair {
  std::string reason;
};

/// Whether all addresses that a request names are members. Empty: they are; else the one that is not.
std::string stranger_of(const group_view& group, const named_pair& named);

/// The pair of least load that the wish and the breakers allow; a named engine first, where it can take the request. No
/// prefill engine left: decode alone, if `local_prefill`.
std::variant<chosen_pair, no_pair> choose(const group_view& group, const action::choose_pair& wish,
                                          const named_pair& named, std::size_t prompt_bytes, bool local_prefill);
/// The least loaded of the decode engines that are named (none named: of all) by itself, if one can take the request.
std::optional<chosen_pair> choose_alone(const group_view& group, const named_pair& named, std::size_t prompt_bytes);

/// Known to all threads at once, where nobody listened: the next request is not to run into it.
void note_refusal(const group_view& group, const action::report& what);

}  // namespace infernex::proxy
