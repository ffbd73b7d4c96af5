#include "nodes/fetch.hpp"

#include <future>

#include "actors/runtime/http/client.hpp"
#include "actors/runtime/http/server.hpp"

namespace infernex::nodes {

namespace {

struct exchange {
  http::url base;
  std::string method;
  std::string target;
  std::string body;
  std::chrono::milliseconds timeout;
  std::promise<result<http::response>> done;
};

http::task<void> run(http::worker& worker, std::shared_ptr<exchange> call) {
  http::fields headers;
  if (!call->body.empty()) headers.push_back({"Content-Type", "application/json"});
  http::outgoing what;
  what.method = call->method;
  what.target = call->target;
  what.headers = std::move(headers);
  what.body = call->body;
  http::call_options options;
  options.connect_timeout = options.response_timeout = options.idle_timeout = call->timeout;
  auto answer = co_await worker.upstream().fetch(call->base.at, what, options);
  call->done.set_value(std::move(answer));
}

}  // namespace

result<std::string> fetch(const std::string& method, const std::string& base, const std::string& path,
                          const std::string& body, std::chrono::milliseconds timeout) {
  auto url = http::parse_url(base);
  if (!url) return url.failure();
  while (url->path.ends_with('/')) url->path.pop_back();
  auto call = std::make_shared<exchange>();
  call->base = *std::move(url);
  call->method = method;
  call->target = call->base.path + path;
  call->body = body;
  call->timeout = timeout;
  auto answer = call->done.get_future();
  http::io_threads threads(1);
  threads.at(0).spawn(run(threads.at(0), call));
  auto got = answer.get();
  if (!got) return got.failure();
  if (got->status == 200) return std::move(got->body);
  return error{errc::malformed_input, base + path + " answers " + std::to_string(got->status) + ": " + got->body};
}

}  // namespace infernex::nodes
