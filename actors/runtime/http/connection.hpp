#pragma once

#include <array>
#include <exception>
#include <memory>
#include <optional>
#include <string>

#include "actors/runtime/http/lane.hpp"
#include "actors/runtime/http/parsers.hpp"
#include "actors/runtime/http/read_buffer.hpp"

namespace infernex::http {

/// One client's connection: reads requests, calls the handler, and is the handler's way back. Lives on its
/// worker's thread, held by the coroutine that serves it and by its pending read.
///
/// There is (almost) always one read under way, also while a handler runs: that is how a client that leaves is
/// noticed. Whoever wants bytes waits on the timer, which the read's completion cancels, so that one timer is
/// event and deadline in one. Internal to this folder.
class connection final : public responder, public std::enable_shared_from_this<connection> {
 public:
  connection(tcp_socket socket, std::shared_ptr<lane> home);
  ~connection() override;

  /// Serves requests until either side ends it.
  static task<void> serve(std::shared_ptr<connection> self);
  /// Answers 503 without reading a request.
  static task<void> turn_away(std::shared_ptr<connection> self);

  /// Between two requests with no byte of the next one here, or lingering after the last answer.
  bool idle();
  /// Closes at once; a running handler is told by its on_client_gone.
  void cancel();

  task<bool> send(unsigned status, std::string_view content_type, std::string_view body, fields extra) override;
  task<bool> start_stream(unsigned status, std::string_view content_type, fields extra) override;
  task<bool> write(std::string_view bytes) override;
  task<bool> end_stream() override;
  void abort() override;
  bool started() const override { return started_; }
  bool client_gone() const override { return peer_closed_ || broken_; }
  void on_client_gone(std::function<void()> gone) override;

 private:
  /// One request and its answer; whether another may follow.
  task<bool> serve_one();
  /// False if there is no request to handle; a bad one has been answered.
  task<bool> read_request();
  task<void> run_handler();
  task<void> refuse(unsigned status, std::string_view code, std::string_view message);
  /// Lets the client read the last answer before the connection goes: closing with unread bytes in the socket
  /// would make the kernel reset it. Bounded in time and bytes.
  task<void> linger();

  enum class fill_outcome : std::uint8_t { data, ended, timed_out };
  task<fill_outcome> fill(steady::time_point deadline);
  void start_read();
  void on_read(const error_code& problem, std::size_t count);
  std::size_t read_size() const;

  // Three parameters, not an array: g++ 12 cannot build an array inside a co_await expression.
  task<bool> write_all(asio::const_buffer a, asio::const_buffer b = {}, asio::const_buffer c = {});
  task<bool> wait_writable(steady::time_point deadline);
  bool keep_alive() const { return keep_alive_ && !home_->draining; }
  void reset_for_request();
  void tell_gone();
  void close();

  std::shared_ptr<lane> home_;
  tcp_socket socket_;
  timer timer_;
  read_buffer buffer_;
  std::optional<request_parser> parser_;
  request request_;
  std::string head_;
  std::function<void()> gone_;
  std::uint64_t write_ticket_ = 0;

  /// From the first byte of a request to the end of its answer.
  std::optional<counted> busy_;
  bool reading_ = false;
  bool wants_bytes_ = false;
  bool in_handler_ = false;
  /// The client has sent its last byte; it may still be reading.
  bool peer_closed_ = false;
  /// Nothing can be sent any more.
  bool broken_ = false;
  bool keep_alive_ = true;
  bool http10_ = false;
  bool bodiless_ = false;
  bool chunked_ = false;
  bool started_ = false;
  bool finished_ = false;
};

}  // namespace infernex::http
