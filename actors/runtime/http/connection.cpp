#include "actors/runtime/http/connection.hpp"

#include <algorithm>
#include <charconv>

#include <boost/beast/http/error.hpp>

#include "actors/runtime/http/head.hpp"
#include "actors/runtime/log.hpp"

namespace infernex::http {

namespace {

constexpr std::size_t largest_read = 64 << 10;
/// Read ahead of a running handler; with more, a pipelining client is left unread, which only means that its
/// leaving is noticed later.
constexpr std::size_t most_pipelined = 64 << 10;
constexpr std::chrono::milliseconds linger_time{2'000};
constexpr std::size_t linger_bytes = 4 << 20;

struct rejection {
  unsigned status;
  std::string_view code;
  std::string message;
};

rejection reject(const error_code& problem, const server_settings& settings) {
  if (problem == beast::http::error::body_limit)
    return {413, "request_too_large",
            "the request body is larger than " + std::to_string(settings.max_body_bytes) + " bytes"};
  if (problem == beast::http::error::header_limit)
    return {431, "headers_too_large",
            "the request's header is larger than " + std::to_string(settings.max_header_bytes) + " bytes"};
  return {400, "malformed_http", "not a valid HTTP/1.1 request: " + problem.message()};
}

void log_failure(const request& in, std::string_view what) {
  static log::limiter failures;
  if (const auto repeated = failures.admit())
    log::error("http handler failed",
               {{"method", in.method}, {"path", in.path}, {"problem", what}, {"repeated", repeated}});
}

}  // namespace

connection::connection(tcp_socket socket, std::shared_ptr<lane> home)
    : home_(std::move(home)), socket_(std::move(socket)), timer_(socket_.get_executor()) {
  home_->connections.insert(this);
  error_code ignored;
  socket_.set_option(tcp::no_delay(true), ignored);
  socket_.non_blocking(true, ignored);
  const auto peer = socket_.remote_endpoint(ignored);
  if (!ignored) {
    const auto address = peer.address();
    request_.remote =
        (address.is_v6() ? "[" + address.to_string() + "]" : address.to_string()) + ":" + std::to_string(peer.port());
  }
}

connection::~connection() { home_->connections.erase(this); }

task<void> connection::serve(std::shared_ptr<connection> self) {
  const counted open(self->home_->open);
  while (co_await self->serve_one()) {
  }
  if (self->finished_) co_await self->linger();
  self->close();
}

task<void> connection::turn_away(std::shared_ptr<connection> self) {
  ++self->home_->turned_away_now;
  self->reset_for_request();
  co_await self->refuse(503, "too_many_connections", "the server has no room for another connection");
  co_await self->linger();
  self->close();
  --self->home_->turned_away_now;
}

task<bool> connection::serve_one() {
  reset_for_request();
  const bool complete = co_await read_request();
  if (complete) co_await run_handler();
  busy_.reset();
  co_return complete&& finished_&& keep_alive() && !broken_;
}

void connection::reset_for_request() {
  request_.method.clear();
  request_.target.clear();
  request_.path.clear();
  request_.headers.clear();
  if (request_.body.capacity() > largest_read)
    request_.body = {};
  else
    request_.body.clear();
  keep_alive_ = true;
  http10_ = bodiless_ = chunked_ = started_ = finished_ = false;
}

task<bool> connection::read_request() {
  parser_.emplace(request_, home_->settings);
  auto deadline = steady::now() + home_->settings.idle_timeout;
  bool continued = false;
  for (;;) {
    if (!busy_) {
      // An empty line before a request is to be ignored (RFC 9112 section 2.2).
      while (buffer_.view().starts_with("\r\n")) buffer_.consume(2);
      if (!buffer_.empty() && buffer_.view() != "\r") {
        busy_.emplace(home_->busy);
        request_.received_at = steady::now();
        deadline = request_.received_at + home_->settings.read_timeout;
      }
    }
    if (busy_ && !buffer_.empty()) {
      error_code problem;
      const bool had_header = parser_->is_header_done();
      buffer_.consume(parser_->put(asio::buffer(buffer_.data(), buffer_.size()), problem));
      http10_ = parser_->http10();
      if (problem && problem != beast::http::error::need_more) {
        const auto answer = reject(problem, home_->settings);
        co_await refuse(answer.status, answer.code, answer.message);
        co_return false;
      }
      if (!had_header && parser_->is_header_done()) {
        if (const char* objection = parser_->objection()) {
          co_await refuse(400, "malformed_http", objection);
          co_return false;
        }
        keep_alive_ = parser_->keep_alive();
      }
      if (parser_->is_done()) {
        bodiless_ = request_.method == "HEAD";
        co_return true;
      }
      if (parser_->is_header_done() && !continued && buffer_.empty() && request_.body.empty() &&
          parser_->expects_continue()) {
        continued = true;
        static constexpr std::string_view go_on = "HTTP/1.1 100 Continue\r\n\r\n";
        if (!co_await write_all(asio::buffer(go_on.data(), go_on.size()))) co_return false;
        if (!buffer_.empty()) continue;
      }
      // What Beast leaves unconsumed is one line (or one trailer) that has not ended yet.
      if (buffer_.size() > home_->settings.max_header_bytes) {
        co_await refuse(431, "headers_too_large", "a line of the request is too long");
        co_return false;
      }
    }
    if (!busy_ && home_->draining) co_return false;
    switch (co_await fill(deadline)) {
      case fill_outcome::data:
        break;
      case fill_outcome::ended:
        co_return false;
      case fill_outcome::timed_out:
        if (busy_) co_await refuse(408, "request_timeout", "the request did not arrive in time");
        co_return false;
    }
  }
}

task<void> connection::run_handler() {
  const counted active(home_->active);
  home_->requests.fetch_add(1, std::memory_order_relaxed);
  in_handler_ = true;
  if (buffer_.size() < most_pipelined) start_read();
  std::string failure;
  try {
    co_await home_->handle(home_->on, request_, *this);
  } catch (const std::exception& problem) {
    failure = problem.what();
    if (failure.empty()) failure = "an exception";
  } catch (...) {
    failure = "an exception of an unknown type";
  }
  gone_ = nullptr;
  if (failure.empty() && !finished_ && !client_gone())
    failure = started_ ? "the answer was not ended" : "there was no answer";
  if (!failure.empty()) {
    home_->failures.fetch_add(1, std::memory_order_relaxed);
    log_failure(request_, failure);
  }
  if (!started_ && !client_gone()) {
    const auto body = openai_error(500, "the server failed to answer this request", "internal_error");
    co_await send(500, "application/json", body, {});
  }
  in_handler_ = false;
  if (!finished_) abort();
}

task<void> connection::refuse(unsigned status, std::string_view code, std::string_view message) {
  home_->rejected.fetch_add(1, std::memory_order_relaxed);
  keep_alive_ = false;
  fields extra;
  if (status == 503) extra.push_back({"Retry-After", "1"});
  const auto body = openai_error(status, message, code);
  co_await send(status, "application/json", body, std::move(extra));
}

task<void> connection::linger() {
  if (broken_) co_return;
  error_code ignored;
  socket_.shutdown(tcp_socket::shutdown_send, ignored);
  const auto deadline = steady::now() + linger_time;
  for (std::size_t discarded = 0; discarded < linger_bytes && !peer_closed_;) {
    discarded += buffer_.size();
    buffer_.clear();
    if (co_await fill(deadline) != fill_outcome::data) break;
  }
}

task<connection::fill_outcome> connection::fill(steady::time_point deadline) {
  const std::size_t before = buffer_.size();
  start_read();
  wants_bytes_ = true;
  while (reading_) {
    error_code woken;
    timer_.expires_at(deadline);
    co_await timer_.async_wait(asio::redirect_error(use_task, woken));
    if (!woken && reading_) {
      wants_bytes_ = false;
      co_return fill_outcome::timed_out;
    }
    if (broken_) break;
  }
  wants_bytes_ = false;
  co_return buffer_.size() > before ? fill_outcome::data : fill_outcome::ended;
}

std::size_t connection::read_size() const {
  if (in_handler_ || !parser_ || !parser_->is_header_done() || parser_->is_done()) return read_buffer::small;
  const auto remaining = parser_->content_length_remaining();
  return remaining ? std::clamp<std::size_t>(*remaining, read_buffer::small, largest_read) : largest_read;
}

void connection::start_read() {
  if (reading_ || peer_closed_ || broken_) return;
  reading_ = true;
  const auto space = buffer_.prepare(read_size());
  socket_.async_read_some(
      asio::buffer(space.data(), space.size()),
      [self = shared_from_this()](const error_code& problem, std::size_t count) { self->on_read(problem, count); });
}

void connection::on_read(const error_code& problem, std::size_t count) {
  reading_ = false;
  buffer_.commit(count);
  if (problem) peer_closed_ = true;
  if (problem && problem != asio::error::eof) broken_ = true;
  if (wants_bytes_) {
    timer_.cancel();
  } else if (in_handler_) {
    if (problem)
      tell_gone();
    else if (buffer_.size() < most_pipelined)
      start_read();
  }
}

bool connection::idle() {
  error_code ignored;
  return !busy_ && buffer_.empty() && socket_.available(ignored) == 0;
}

void connection::cancel() {
  close();
  tell_gone();
}

void connection::close() {
  broken_ = true;
  error_code ignored;
  socket_.close(ignored);
  timer_.cancel();
}

void connection::tell_gone() {
  if (finished_) return;
  if (const auto gone = std::exchange(gone_, nullptr)) gone();
}

void connection::on_client_gone(std::function<void()> gone) {
  gone_ = std::move(gone);
  if (gone_ && client_gone()) tell_gone();
}

task<bool> connection::send(unsigned status, std::string_view content_type, std::string_view body, fields extra) {
  if (started_ || broken_) co_return false;
  const bool empty = status < 200 || status == 204 || status == 304;
  response_line line{.status = status, .content_type = content_type, .body = empty ? framing::none : framing::length};
  line.length = body.size();
  line.keep_alive = keep_alive_ = keep_alive();
  line.http10 = http10_;
  head_.clear();
  append_response_head(head_, line, extra);
  started_ = true;
  if (empty || bodiless_) body = {};
  finished_ = co_await write_all(asio::buffer(head_), asio::buffer(body.data(), body.size()));
  co_return finished_;
}

task<bool> connection::start_stream(unsigned status, std::string_view content_type, fields extra) {
  if (started_ || client_gone()) co_return false;
  // HTTP/1.0 has no chunks: there the end of the connection ends the body.
  if (http10_) keep_alive_ = false;
  chunked_ = !http10_;
  response_line line{.status = status, .content_type = content_type, .body = framing::chunked};
  if (http10_) line.body = framing::until_close;
  line.keep_alive = keep_alive_ = keep_alive();
  head_.clear();
  append_response_head(head_, line, extra);
  started_ = true;
  co_return co_await write_all(asio::buffer(head_));
}

task<bool> connection::write(std::string_view bytes) {
  if (!started_ || finished_ || client_gone()) co_return false;
  if (bytes.empty() || bodiless_) co_return true;  // an empty chunk would end the stream
  if (!chunked_) co_return co_await write_all(asio::buffer(bytes.data(), bytes.size()));
  std::array<char, 18> size_line;
  char* end = std::to_chars(size_line.data(), size_line.data() + 16, bytes.size(), 16).ptr;
  *end++ = '\r';
  *end++ = '\n';
  co_return co_await write_all(asio::buffer(size_line.data(), static_cast<std::size_t>(end - size_line.data())),
                               asio::buffer(bytes.data(), bytes.size()), asio::buffer("\r\n", 2));
}

task<bool> connection::end_stream() {
  if (!started_ || finished_ || broken_) co_return false;
  if (chunked_ && !bodiless_)
    finished_ = co_await write_all(asio::buffer("0\r\n\r\n", 5));
  else
    finished_ = true;
  co_return finished_;
}

void connection::abort() {
  gone_ = nullptr;
  if (broken_) return;
  error_code ignored;
  // Without chunks a plain close would look like the answer's proper end; a reset does not.
  if (started_ && !chunked_) socket_.set_option(asio::socket_base::linger(true, 0), ignored);
  close();
}

task<bool> connection::write_all(asio::const_buffer a, asio::const_buffer b, asio::const_buffer c) {
  std::array<asio::const_buffer, 3> parts{a, b, c};
  std::optional<steady::time_point> deadline;
  std::size_t first = 0;
  for (;;) {
    while (first < parts.size() && parts[first].size() == 0) ++first;
    if (first == parts.size()) co_return true;
    if (broken_) co_return false;
    // Most writes fit into the socket's buffer; trying first saves them a round through the reactor.
    error_code problem;
    std::size_t sent = socket_.write_some(parts, problem);
    if (problem == asio::error::would_block) {
      if (!deadline) deadline = steady::now() + home_->settings.write_timeout;
      if (!co_await wait_writable(*deadline)) co_return false;
      continue;
    }
    if (problem) {
      close();
      co_return false;
    }
    for (std::size_t i = first; sent > 0; ++i) {
      const std::size_t part = std::min(sent, parts[i].size());
      parts[i] += part;
      sent -= part;
    }
  }
}

task<bool> connection::wait_writable(steady::time_point deadline) {
  timer_.expires_at(deadline);
  timer_.async_wait([self = shared_from_this(), ticket = ++write_ticket_](const error_code& stopped) {
    if (!stopped && self->write_ticket_ == ticket) self->close();
  });
  error_code problem;
  co_await socket_.async_wait(tcp_socket::wait_write, asio::redirect_error(use_task, problem));
  ++write_ticket_;
  timer_.cancel();
  co_return !problem && !broken_;
}

}  // namespace infernex::http
