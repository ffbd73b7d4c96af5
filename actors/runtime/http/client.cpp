#include "actors/runtime/http/client.hpp"

#include <algorithm>
#include <optional>
#include <utility>

#include <boost/beast/http/error.hpp>

#include "actors/runtime/http/head.hpp"
#include "actors/runtime/http/parsers.hpp"
#include "actors/runtime/http/pool.hpp"

namespace infernex::http {

/// One call, from the connection to the end of the body.
struct exchange_impl {
  exchange_impl(upstream_pool& its_pool, const origin& its_origin, const call_options& its_options);
  exchange_impl(const exchange_impl&) = delete;
  exchange_impl& operator=(const exchange_impl&) = delete;
  ~exchange_impl();

  /// Sends the request and reads the response's head.
  task<error> start(std::string_view head, std::string_view body, bool is_head_request);
  task<result<std::string_view>> read_some();
  void cancel();
  bool cancelled() const { return cancelled_; }
  error lost(std::string_view why) const;
  /// Gives the connection back, or closes it.
  void release();

  upstream_pool& pool;
  origin to;
  std::chrono::milliseconds response_timeout;
  std::chrono::milliseconds idle_timeout;
  cancel_source* source;
  std::shared_ptr<upstream> connection;
  unsigned status = 0;
  fields headers;
  /// A byte of the response has been read.
  bool answered = false;

 private:
  friend class cancel_source;
  error_code parse();
  error malformed(std::string_view why) const;

  std::optional<response_parser> parser_;
  std::optional<error> failure_;
  bool cancelled_ = false;
};

exchange_impl::exchange_impl(upstream_pool& its_pool, const origin& its_origin, const call_options& its_options)
    : pool(its_pool),
      to(its_origin),
      response_timeout(its_options.response_timeout),
      idle_timeout(its_options.idle_timeout),
      source(its_options.cancel) {
  if (!source) return;
  source->calls_.push_back(this);
  cancelled_ = source->requested_;
}

exchange_impl::~exchange_impl() {
  if (source) std::erase(source->calls_, this);
  release();
}

void exchange_impl::release() {
  if (!connection) return;
  const auto mine = std::exchange(connection, nullptr);
  const bool reusable = parser_ && parser_->is_done() && parser_->keep_alive() && mine->buffer().empty();
  if (reusable && !mine->closed())
    pool.give_back(to, mine);
  else
    mine->close();
}

void exchange_impl::cancel() {
  cancelled_ = true;
  if (connection) connection->close();
}

error exchange_impl::lost(std::string_view why) const {
  std::string detail = to.host + ":" + std::to_string(to.port) + ": " + std::string(why);
  if (cancelled_) return {errc::cancelled, std::move(detail)};
  if (connection && connection->expired()) return {errc::timed_out, std::move(detail)};
  return {errc::connection_lost, std::move(detail)};
}

error exchange_impl::malformed(std::string_view why) const {
  return {errc::malformed_input, to.host + ":" + std::to_string(to.port) + ": " + std::string(why)};
}

error_code exchange_impl::parse() {
  error_code problem;
  auto& buffer = connection->buffer();
  buffer.consume(parser_->put(asio::buffer(buffer.data(), buffer.size()), problem));
  if (problem == beast::http::error::need_more) problem = {};
  // A line of chunk framing that never ends.
  if (!problem && !parser_->is_done() && buffer.size() > pool.settings().max_header_bytes)
    problem = beast::http::error::header_limit;
  return problem;
}

task<error> exchange_impl::start(std::string_view head, std::string_view body, bool is_head_request) {
  connection->expect_by(steady::now() + response_timeout);
  const error unsent = co_await connection->write(head, body);
  // A server may answer and close before it has read everything, so a failed write is not the last word.
  connection->expect_by(steady::now() + response_timeout);
  bool unparsed = false;
  do {
    status = 0;
    headers.clear();
    parser_.emplace(status, headers, pool.settings().max_header_bytes);
    if (is_head_request) parser_->skip(true);
    while (!parser_->is_header_done()) {
      if (!unparsed && !co_await connection->read())
        co_return lost(unsent.detail.empty() ? "no answer" : unsent.detail);
      answered = true;
      if (const auto problem = parse()) co_return malformed(problem.message());
      unparsed = false;
    }
    if (status == 101) co_return malformed("switches to another protocol");
    unparsed = !connection->buffer().empty();
  } while (status < 200);  // 100 Continue and 103 Early Hints announce the real one
  connection->expect_nothing();
  co_return error{};
}

task<result<std::string_view>> exchange_impl::read_some() {
  if (failure_) co_return *failure_;
  while (connection) {
    if (const auto piece = parser_->take_body(); !piece.empty()) co_return piece;
    if (parser_->is_done()) {
      release();
      break;
    }
    connection->expect_by(steady::now() + idle_timeout);
    const bool more = co_await connection->read();
    connection->expect_nothing();
    error_code problem;
    if (more)
      problem = parse();
    else if (!connection->closed())
      parser_->put_eof(problem);
    if (more ? problem.failed() : problem.failed() || connection->closed()) {
      failure_ = more ? malformed(problem.message()) : lost("in the middle of a response");
      release();
      co_return *failure_;
    }
  }
  co_return std::string_view{};
}

cancel_source::~cancel_source() {
  for (auto* call : calls_) call->source = nullptr;
}

void cancel_source::request() {
  requested_ = true;
  for (auto* call : calls_) call->cancel();
}

exchange::exchange(std::unique_ptr<exchange_impl> state) : impl_(std::move(state)) {}
exchange::exchange(exchange&&) noexcept = default;
exchange& exchange::operator=(exchange&&) noexcept = default;
exchange::~exchange() = default;

unsigned exchange::status() const { return impl_->status; }
const fields& exchange::headers() const { return impl_->headers; }
task<result<std::string_view>> exchange::read_some() { return impl_->read_some(); }

task<result<std::string>> exchange::read_all(std::size_t max_bytes) {
  std::string all;
  for (;;) {
    const auto piece = co_await impl_->read_some();
    if (!piece) co_return piece.failure();
    if (piece->empty()) co_return all;
    if (piece->size() > max_bytes - all.size())
      co_return error{errc::too_large, "a response of more than " + std::to_string(max_bytes) + " bytes"};
    all.append(*piece);
  }
}

exchange client::make_exchange(std::unique_ptr<exchange_impl> state) { return exchange(std::move(state)); }

task<result<response>> client::fetch(const origin& to, const outgoing& what, const call_options& options,
                                     std::size_t max_bytes) {
  auto opened = co_await open(to, what, options);
  if (!opened) co_return opened.failure();
  auto body = co_await opened->read_all(max_bytes);
  if (!body) co_return body.failure();
  response whole;
  whole.status = opened->status();
  whole.headers = opened->headers();
  whole.body = *std::move(body);
  co_return whole;
}

namespace {

class pooled_client final : public client {
 public:
  explicit pooled_client(upstream_pool& pool) : pool_(pool) {}

  task<result<exchange>> open(const origin& to, const outgoing& what, const call_options& options) override {
    const std::string_view target = what.target.empty() ? "/" : what.target;
    if (!valid_method(what.method) || !valid_target(target))
      co_return error{errc::invalid_request,
                      "not a request line: " + std::string(what.method) + " " + std::string(target)};
    auto call = std::make_unique<exchange_impl>(pool_, to, options);
    if (call->cancelled()) co_return call->lost("before it was sent");
    std::string head;
    append_request_head(head, to, what.method, target, what.headers, what.body.size());

    call->connection = pool_.take(to);
    bool pooled = call->connection != nullptr;
    for (;;) {
      if (!pooled) {
        call->connection = pool_.make();
        error refused = co_await call->connection->connect(to, options.connect_timeout);
        if (refused.code != errc::none) co_return refused;
      }
      error problem = co_await call->start(head, what.body, what.method == "HEAD");
      if (problem.code == errc::none) co_return make_exchange(std::move(call));
      // The other side may have closed an idle connection at the moment we took it.
      const bool stale = pooled && !call->answered && problem.code == errc::connection_lost;
      if (!stale) co_return problem;
      call->release();
      pooled = false;
    }
  }

 private:
  upstream_pool& pool_;
};

}  // namespace

std::unique_ptr<client> make_pooled_client(upstream_pool& pool) { return std::make_unique<pooled_client>(pool); }

}  // namespace infernex::http
