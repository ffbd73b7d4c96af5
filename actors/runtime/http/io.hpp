#pragma once

#include <chrono>

#include <boost/asio/basic_socket_acceptor.hpp>
#include <boost/asio/basic_stream_socket.hpp>
#include <boost/asio/basic_waitable_timer.hpp>
#include <boost/asio/ip/tcp.hpp>
#include <boost/asio/redirect_error.hpp>

#include "actors/runtime/http/types.hpp"

/// Asio's I/O objects with our concrete executor. Internal to this folder.
namespace infernex::http {

using tcp = asio::ip::tcp;
using steady = std::chrono::steady_clock;
using tcp_socket = asio::basic_stream_socket<tcp, executor>;
using tcp_acceptor = asio::basic_socket_acceptor<tcp, executor>;
using timer = asio::basic_waitable_timer<steady, asio::wait_traits<steady>, executor>;
using error_code = boost::system::error_code;

}  // namespace infernex::http
