#include "actors/proxy/hand.hpp"

namespace infernex::proxy {
namespace {

http::task<void> probe(hand& at, std::string address, std::string url) {
  const auto to = http::parse_url(url);
  bool healthy = false;
  if (to) {
    http::call_options options;
    options.connect_timeout = options.response_timeout = options.idle_timeout = at.shared.how.probe_timeout;
    const http::outgoing what{"GET", "/health", {}, {}};
    constexpr std::size_t most = 64 << 10;
    const auto answer = co_await at.worker.upstream().fetch(to->at, what, options, most);
    healthy = answer && answer->status == 200;
  }
  at.probing.erase(address);
  at.shared.actor.send(std::make_shared<const probe_result>(probe_result{std::move(address), healthy}));
}

}  // namespace

http::task<void> probe_listed(hand& at) {
  http::waiter pause(at.worker.context());
  for (;;) {
    const auto view = at.view();
    for (const auto& m : view->members) {
      if (!m.probed || !at.probing.insert(m.engine.address).second) continue;
      at.worker.spawn(probe(at, m.engine.address, m.engine.url));
    }
    co_await pause.wait(std::chrono::steady_clock::now() + at.shared.how.probe_interval);
  }
}

}  // namespace infernex::proxy
