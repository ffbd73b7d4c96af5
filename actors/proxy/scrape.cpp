#include "actors/proxy/hand.hpp"
#include "actors/proxy/metrics_merge.hpp"

namespace infernex::proxy {
namespace {

struct scrape {
  explicit scrape(http::worker& on) : done(on.context()) {}
  metrics_merge pages;
  std::size_t left = 0;
  http::waiter done;
};

http::task<void> scrape_one(hand& at, std::string url, std::shared_ptr<scrape> into) {
  const auto to = http::parse_url(url);
  if (to) {
    http::call_options options;
    options.connect_timeout = options.response_timeout = options.idle_timeout = at.shared.how.scrape_timeout;
    const http::outgoing what{"GET", "/metrics", {}, {}};
    const auto page = co_await at.worker.upstream().fetch(to->at, what, options, at.shared.how.max_scrape_bytes);
    if (page && page->status == 200) into->pages.add(page->body);
  }
  if (--into->left == 0) into->done.notify();
}

}  // namespace

http::task<std::string> scrape_group(hand& at) {
  const auto view = at.view();
  std::set<std::string> urls;
  for (const auto& m : view->members) {
    if (m.state == fb::EngineState::Ready) urls.insert(m.engine.url);
  }
  if (urls.empty()) co_return std::string();
  const auto all = std::make_shared<scrape>(at.worker);
  all->left = urls.size();
  for (const auto& url : urls) at.worker.spawn(scrape_one(at, url, all));
  // Each has its own deadline; this one is for an engine that sends byte by byte.
  co_await all->done.wait(std::chrono::steady_clock::now() + 2 * at.shared.how.scrape_timeout);
  if (const auto left_out = all->pages.refused(); left_out > 0)
    at.shared.process.metrics
        .counter("infernex_proxy_merged_series_refused_total",
                 "Series of engines' metrics pages left out for the bound")
        .Increment(static_cast<double>(left_out));
  co_return all->pages.render();
}

}  // namespace infernex::proxy
