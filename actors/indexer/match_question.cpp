#include "actors/indexer/match_question.hpp"

#include <array>
#include <limits>
#include <utility>

#include <boost/json/serialize.hpp>

#include "actors/engine/block_key.hpp"
#include "actors/indexer/index_name.hpp"

namespace infernex::indexer {

namespace {

constexpr std::uint32_t max_block_size = 65'536;
/// Not for engines.
constexpr std::array<std::string_view, 11> own_fields{"model",      "tenant",     "tenant_id",  "lora_name",
                                                      "cache_salt", "top",        "explain",    "token_ids",
                                                      "block_keys", "block_size", "instance_id"};

std::string rendering_body(const request_body& body) {
  auto fields = body.fields();
  for (const auto name : own_fields) fields.erase({name.data(), name.size()});
  return boost::json::serialize(fields);
}

void read_form(request_body& body, match_question& into) {
  int given = 0;
  const auto is = [&](std::string_view field, match_question::form form) {
    if (!body.has(field)) return;
    into.by = form;
    ++given;
  };
  is("token_ids", match_question::form::tokens);
  is("block_keys", match_question::form::keys);
  is("prompt", match_question::form::prompt);
  is("messages", match_question::form::messages);
  if (given != 1) body.complain("token_ids", "exactly one of token_ids, block_keys, prompt, messages is wanted");
}

}  // namespace

std::optional<refusal> read_match_question(std::string_view text, match_question& into) {
  request_body body(text);
  into.model = body.required_text("model");
  into.tenant = body.text(body.has("tenant_id") ? "tenant_id" : "tenant");
  into.adapter = body.text("lora_name");
  into.salt = body.text("cache_salt");
  into.block_size = body.number("block_size", 1, max_block_size);
  into.top = body.number("top", 1, std::numeric_limits<std::uint32_t>::max());
  into.explain = body.flag("explain");
  read_form(body, into);
  into.token_ids = body.tokens("token_ids");
  into.chains = body.lists_of_hashes("block_keys", max_chains);
  if (body.mistake()) return body.mistake();
  auto name = index_name(into.model, into.tenant);
  if (!name) return refusal{400, "model, tenant: not a pair of names that can be indexed", {}, "model"};
  into.index = *std::move(name);
  if (into.by == match_question::form::prompt || into.by == match_question::form::messages)
    into.to_render = rendering_body(body);
  return std::nullopt;
}

std::optional<refusal> settle_names(match_question& question, const engine_list& engines) {
  const auto* model = engines.find(question.index);
  if (!model && question.adapter.empty()) {
    const auto base = engines.model_of_adapter(question.model);
    const auto of = split_index_name(base);
    if (!base.empty() &&
        of == tenant_model{of.model, question.tenant.empty() ? std::string(default_tenant) : question.tenant}) {
      question.adapter = std::exchange(question.model, of.model);
      question.index = base;
      model = engines.find(base);
    }
  }
  if (!model) return refusal{404, "no engine of model \"" + question.model + "\" is known", "model_not_found", "model"};
  // Keys were made by the caller, at a block size of his.
  if (const auto own = model->block_size(); own && !(question.by == match_question::form::keys && question.block_size))
    question.block_size = own;
  if (!question.block_size)
    return refusal{
        503, "the block size of model \"" + question.model + "\" is not known yet", "block_size_unknown", {}};
  return std::nullopt;
}

std::vector<block_key> keys_of(const match_question& question, std::span<const std::uint32_t> tokens,
                               bool every_block) {
  const engine::key_root root{question.index, question.adapter, question.salt, *question.block_size};
  const auto limit = every_block ? tokens.size() : engine::cacheable_blocks(tokens.size(), *question.block_size);
  return engine::chain_keys(root, tokens, limit);
}

}  // namespace infernex::indexer
