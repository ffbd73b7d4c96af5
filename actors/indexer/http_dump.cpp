#include <algorithm>

#include "actors/indexer/dump.hpp"
#include "actors/indexer/http_api.hpp"

namespace infernex::indexer {
namespace {

/// False: the client is gone.
http::task<bool> dump_instance(api_call& call, kv_index::reader& keys, const std::string& instance, dump_text& text) {
  const auto head = text.begin_instance(instance);
  if (!co_await call.out.write(head)) co_return false;
  for (std::uint32_t part = 0; part < kv_index::key_parts && !text.cut(); ++part) {
    // The writer goes on, but keeps what this part consists of until it has been read.
    std::vector<block_key> some;
    keys.each_key(instance, part, [&some](block_key key) { some.push_back(key); });
    const auto piece = text.keys(some);
    if (!piece.empty() && !co_await call.out.write(piece)) co_return false;
  }
  const auto tail = text.end_instance();
  co_return co_await call.out.write(tail);
}

}  // namespace

http::task<void> serve_dump(api_call& call) {
  dump_question about;
  auto wrong = read_dump_question(call.in.target, about);
  const auto index = wrong ? nullptr : call.at.facts->indexes->find(about.index);
  if (!wrong && !index)
    wrong = refusal{404, "no engine of model \"" + about.model + "\" is known", "model_not_found", "model"};
  const auto page = call.at.page();
  const auto sources = page->sources_of(about.index);
  if (!wrong && !about.instance.empty() &&
      std::ranges::find(sources, about.instance, &source_status::instance) == sources.end())
    wrong = refusal{404, "no engine " + about.instance + " of this model is known", "instance_not_found", "instance"};
  if (wrong) {
    co_await refuse(call.out, *std::move(wrong));
    co_return;
  }
  kv_index::reader keys(*index);
  dump_text text(about);
  const auto head = text.head();
  bool going = co_await call.out.start_stream(200, "application/json");
  if (going) going = co_await call.out.write(head);
  for (const auto& source : sources) {
    if (!going || text.cut()) break;
    if (about.instance.empty() || source.instance == about.instance)
      going = co_await dump_instance(call, keys, source.instance, text);
  }
  if (!going) co_return;
  const auto tail = text.tail();
  if (co_await call.out.write(tail)) co_await call.out.end_stream();
}

}  // namespace infernex::indexer
