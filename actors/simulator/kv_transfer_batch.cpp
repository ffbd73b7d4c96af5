// Transfers of requests with several prompts.

#include <algorithm>
#include <charconv>
#include <limits>

#include "actors/simulator/json_fields.hpp"
#include "actors/simulator/kv_transfer_params.hpp"

namespace infernex::simulator {

namespace json = boost::json;

namespace {

/// The number behind the last dash; a number too large if there is none.
std::size_t prompt_of(std::string_view child) {
  constexpr auto none = std::numeric_limits<std::size_t>::max();
  const auto dash = child.rfind('-');
  if (dash == std::string_view::npos) return none;
  const auto digits = child.substr(dash + 1);
  std::size_t number = none;
  const auto [end, problem] = std::from_chars(digits.data(), digits.data() + digits.size(), number);
  return problem == std::errc{} && end == digits.data() + digits.size() ? number : none;
}

parsed<std::vector<kv_transfer_request>> parse_batch(const json::object& params, const kv_transfer_settings& engine,
                                                     std::size_t prompts) {
  json_fields fields(params);
  const auto* named = fields.find("batch_kv_transfer_params");
  const auto* children = named ? named->if_object() : nullptr;
  std::vector<kv_transfer_request> each(prompts);
  for (const auto& [name, of_child] : children ? *children : json::object()) {
    const auto which = prompt_of({name.data(), name.size()});
    auto child = parse_transfer({{"kv_transfer_params", of_child}}, engine);
    if (auto* problem = std::get_if<refusal>(&child)) return std::move(*problem);
    if (which < prompts) each[which] = std::get<kv_transfer_request>(std::move(child));
  }
  const bool whole = std::all_of(each.begin(), each.end(), [](const kv_transfer_request& one) {
    return one.what == kv_transfer_request::part::give;
  });
  if (!whole)
    fields.refuse("batch_kv_transfer_params",
                  "kv_transfer_params.batch_kv_transfer_params: an object with the "
                  "parameters of each prompt, under a name that ends in -<prompt>.");
  if (fields.problem()) return *fields.problem();
  return each;
}

/// SGLang: a list with one value a prompt for each of the three fields; one value for all would match them all alike.
parsed<std::vector<kv_transfer_request>> parse_rooms(const json::object& body, const kv_transfer_settings& engine,
                                                     std::size_t prompts) {
  std::vector<kv_transfer_request> each;
  if (!body.contains("bootstrap_room")) return each;
  json_fields fields(body);
  for (std::size_t i = 0; i < prompts; ++i) {
    json::object one;
    for (const auto* name : {"bootstrap_host", "bootstrap_port", "bootstrap_room"}) {
      const auto* found = fields.find(name);
      const auto* list = found ? found->if_array() : nullptr;
      if (!list || list->size() != prompts) {
        fields.refuse(name, std::string(name) + ": a list with a value for each prompt.");
        return *fields.problem();
      }
      one[name] = (*list)[i];
    }
    auto room = parse_transfer(one, engine);
    if (auto* problem = std::get_if<refusal>(&room)) return std::move(*problem);
    each.push_back(std::get<kv_transfer_request>(std::move(room)));
  }
  return each;
}

}  // namespace

parsed<std::vector<kv_transfer_request>> parse_transfers(const json::object& body, const kv_transfer_settings& engine,
                                                         std::size_t prompts) {
  if (prompts > 1 && engine.protocol == transfer_protocol::sglang) return parse_rooms(body, engine, prompts);
  auto outcome = parse_transfer(body, engine);
  if (auto* problem = std::get_if<refusal>(&outcome)) return std::move(*problem);
  auto& first = std::get<kv_transfer_request>(outcome);
  if (prompts == 1) return std::vector<kv_transfer_request>{std::move(first)};
  if (engine.protocol != transfer_protocol::ascend_layerwise || first.what == kv_transfer_request::part::none)
    return std::vector<kv_transfer_request>{};
  if (first.what == kv_transfer_request::part::take) return std::vector<kv_transfer_request>(prompts, first);
  return parse_batch(body.at("kv_transfer_params").as_object(), engine, prompts);
}

}  // namespace infernex::simulator
