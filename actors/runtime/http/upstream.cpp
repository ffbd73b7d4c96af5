#include "actors/runtime/http/upstream.hpp"

#include <sys/socket.h>

#include <array>

namespace infernex::http {

namespace {

constexpr std::size_t largest_read = 64 << 10;

std::string label(const origin& to) { return to.host + ":" + std::to_string(to.port); }

}  // namespace

error upstream::gave_up(const origin& to, errc otherwise, std::string_view why) const {
  if (expired_) return {errc::timed_out, "connecting to " + label(to)};
  if (closed_) return {errc::cancelled, label(to)};
  return {otherwise, label(to) + ": " + std::string(why)};
}

task<error> upstream::resolve(const origin& to, std::vector<tcp::endpoint>& found) {
  error_code not_numeric;
  const auto address = asio::ip::make_address(to.host, not_numeric);
  if (!not_numeric) {
    found.emplace_back(address, to.port);
    co_return error{};
  }
  lookup_ = std::make_shared<lookup>(on_);
  const auto running = lookup_;
  running->finished.expires_at(steady::time_point::max());
  running->resolver.async_resolve(
      to.host, std::to_string(to.port),
      [running](const error_code& problem, const asio::ip::basic_resolver_results<tcp>& results) {
        running->done = true;
        if (problem) running->problem = problem.message();
        for (const auto& entry : results) running->found.push_back(entry.endpoint());
        running->finished.cancel();
      });
  error_code woken;
  if (!running->done) co_await running->finished.async_wait(asio::redirect_error(use_task, woken));
  lookup_.reset();
  found = running->found;
  if (closed_ || found.empty()) co_return gave_up(to, errc::unreachable, running->problem);
  co_return error{};
}

task<error> upstream::connect(const origin& to, std::chrono::milliseconds limit) {
  expect_by(steady::now() + limit);
  std::vector<tcp::endpoint> candidates;
  if (error unresolved = co_await resolve(to, candidates); unresolved.code != errc::none) co_return unresolved;
  error_code problem;
  for (const auto& candidate : candidates) {
    error_code ignored;
    socket_.close(ignored);
    co_await socket_.async_connect(candidate, asio::redirect_error(use_task, problem));
    if (closed_ || !problem) break;
  }
  if (closed_ || problem) co_return gave_up(to, errc::unreachable, problem.message());
  socket_.set_option(tcp::no_delay(true), problem);
  socket_.non_blocking(true, problem);
  expect_nothing();
  co_return error{};
}

task<error> upstream::write(std::string_view head, std::string_view body) {
  std::array<asio::const_buffer, 2> parts{asio::buffer(head.data(), head.size()),
                                          asio::buffer(body.data(), body.size())};
  while (parts[0].size() + parts[1].size() > 0) {
    if (closed_) co_return error{errc::connection_lost, "closed"};
    error_code problem;
    std::size_t sent = socket_.write_some(parts, problem);
    if (problem == asio::error::would_block) {
      co_await socket_.async_wait(tcp_socket::wait_write, asio::redirect_error(use_task, problem));
      if (!problem) continue;
    }
    if (problem) co_return error{errc::connection_lost, "sending: " + problem.message()};
    for (auto& part : parts) {
      const std::size_t taken = std::min(sent, part.size());
      part += taken;
      sent -= taken;
    }
  }
  co_return error{};
}

task<bool> upstream::read() {
  if (closed_) co_return false;
  // A full read means there is more where it came from.
  const auto space = buffer_.prepare(read_size_);
  error_code problem;
  const std::size_t count = co_await socket_.async_read_some(asio::buffer(space.data(), space.size()),
                                                             asio::redirect_error(use_task, problem));
  buffer_.commit(count);
  if (count == read_size_) read_size_ = largest_read;
  co_return !problem && !closed_;
}

void upstream::expect_by(steady::time_point deadline) {
  deadline_ = deadline;
  if (!armed_for_ || deadline < *armed_for_) arm();
}

void upstream::arm() {
  armed_for_ = deadline_;
  timer_.expires_at(deadline_);
  timer_.async_wait([weak = weak_from_this()](const error_code& stopped) {
    const auto self = weak.lock();
    if (stopped || !self) return;
    self->armed_for_.reset();
    if (self->deadline_ == steady::time_point::max()) return;
    if (steady::now() < self->deadline_) return self->arm();
    self->expired_ = true;
    self->close();
  });
}

bool upstream::usable() {
  if (closed_ || !buffer_.empty()) return false;
  char byte = 0;
  const auto got = ::recv(socket_.native_handle(), &byte, 1, MSG_PEEK | MSG_DONTWAIT);
  return got < 0 && (errno == EAGAIN || errno == EWOULDBLOCK);
}

void upstream::close() {
  closed_ = true;
  error_code ignored;
  socket_.close(ignored);
  timer_.cancel();
  if (lookup_) lookup_->finished.cancel();
}

}  // namespace infernex::http
