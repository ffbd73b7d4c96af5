#include <charconv>

#include "actors/router/plugins/all.hpp"
#include "actors/router/plugins/engine_ring.hpp"
#include "actors/router/plugins/ranking.hpp"

namespace infernex::router::plugins {
namespace {

/// Who asks with the same key goes to the same engine. The key is the first of these headers that is there:
/// x-smg-target-worker (the number of the engine itself, counted from 0 in the order of names; nobody takes the request
/// if that one cannot), x-smg-routing-key, authorization, x-forwarded-for (its first address), cookie. Without any, a
/// random engine. The hash is XXH3 of names, so keys lie elsewhere than in the original, which takes BLAKE3 of URLs.
class consistent_hashing final : public picker {
 public:
  explicit consistent_hashing(parameters& p) : rings_(p) {}

  void pick(const decision_context& context, std::span<const candidate> all, std::span<const double>, std::size_t keep,
            std::vector<std::uint32_t>& order) override {
    const auto& request = context.request;
    if (const auto target = request.header("x-smg-target-worker"); !target.empty())
      return pick_target(context, all, target, order);
    if (const auto key = key_of(request); !key.empty())
      return rings_.rank(context.model, all, engine_rings::hash_of(key), keep, order);
    draw(context.random, all.size(), keep, order);
  }

 private:
  static std::string_view key_of(const placement& request) {
    for (const auto* name : {"x-smg-routing-key", "authorization"})
      if (const auto value = request.header(name); !value.empty()) return value;
    const auto forwarded = request.header("x-forwarded-for");
    if (const auto client = forwarded.substr(0, forwarded.find(',')); !client.empty()) return client;
    return request.header("cookie");
  }
  static void pick_target(const decision_context& context, std::span<const candidate> all, std::string_view target,
                          std::vector<std::uint32_t>& order) {
    std::size_t number = 0;
    const auto end = target.data() + target.size();
    const auto read = std::from_chars(target.data(), end, number);
    if (read.ec != std::errc{} || read.ptr != end || number >= context.model.endpoints.size()) return;
    for (std::uint32_t i = 0; i < all.size(); ++i)
      if (all[i].to == &context.model.endpoints[number]) order.push_back(i);
  }

  engine_rings rings_;
};

}  // namespace

plugin_type consistent_hashing_picker() {
  return {"consistent-hashing-picker", "the same engine for the same routing key, by a ring of hashes",
          "SGLang router (SMG), policy consistent_hashing",
          [](parameters& p) -> plugin_type::made { return std::make_unique<consistent_hashing>(p); }};
}

}  // namespace infernex::router::plugins
