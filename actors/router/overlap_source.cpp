#include "actors/router/overlap_source.hpp"

namespace infernex::router {

overlap_source::overlap_source(bus& messages, const settings& how)
    : messages_(messages), timeout_(how.kvmanager ? wait_of(*how.kvmanager) : how.match_timeout) {
  if (how.kvmanager) manager_.emplace(*how.kvmanager);
}

void overlap_source::ask(const fb::KvMatchQueryT& question, kvmanager_client::completion done) {
  if (manager_) return manager_->ask(question, std::move(done));
  messages_.request<fb::KvMatchReply>(messages_.names().kv_match(question.model), encode(question), timeout_,
                                      std::move(done));
}

}  // namespace infernex::router
