#pragma once

#include <memory>
#include <optional>
#include <stdexcept>
#include <string>
#include <string_view>
#include <utility>

#include <boost/asio/connect.hpp>
#include <boost/asio/io_context.hpp>
#include <boost/asio/ip/tcp.hpp>
#include <boost/beast/core/flat_buffer.hpp>
#include <boost/beast/core/tcp_stream.hpp>
#include <boost/beast/http.hpp>
#include <boost/json/object.hpp>
#include <boost/json/parse.hpp>
#include <boost/json/serialize.hpp>
#include <boost/json/value.hpp>
#include <boost/json/value_to.hpp>
#include <doctest/doctest.h>

#include "actors/runtime/metrics.hpp"
#include "actors/simulator/actor.hpp"
#include "tests/support/wait.hpp"

namespace infernex::test {

namespace json = boost::json;

struct reply {
  unsigned status = 0;
  std::string content_type;
  std::string body;
  json::value parsed() const { return json::parse(body); }
};

/// One HTTP request of its own connection, blocking.
class http_call {
 public:
  using request = boost::beast::http::request<boost::beast::http::string_body>;

  http_call(std::uint16_t port, std::string_view method, std::string_view target, std::string body = {},
            std::string_view request_id = {})
      : socket_(context_) {
    socket_.connect({boost::asio::ip::make_address("127.0.0.1"), port});
    request out;
    out.method_string(method);
    out.target(target);
    out.set("Host", "127.0.0.1");
    if (!request_id.empty()) out.set("X-Request-Id", request_id);
    out.set("Content-Type", "application/json");
    out.body() = std::move(body);
    out.prepare_payload();
    // A server may answer, and refuse the rest, before it has read everything.
    boost::system::error_code refused;
    boost::beast::http::write(socket_, out, refused);
  }

  reply finish() {
    parser_.body_limit(boost::none);
    boost::beast::http::read(socket_, buffer_, parser_);
    const auto& got = parser_.get();
    return {got.result_int(), std::string(got["Content-Type"]), got.body()};
  }

  /// The next server-sent event's data; nothing at the stream's end.
  std::optional<std::string> next_event() {
    for (;;) {
      auto& body = parser_.get().body();
      if (const auto end = body.find("\n\n", read_); end != std::string::npos) {
        auto event = body.substr(read_, end - read_);
        read_ = end + 2;
        REQUIRE(event.starts_with("data: "));
        return event.substr(6);
      }
      if (parser_.is_done()) return std::nullopt;
      boost::beast::http::read_some(socket_, buffer_, parser_);
    }
  }

  void close() { socket_.close(); }

 private:
  boost::asio::io_context context_;
  boost::asio::ip::tcp::socket socket_;
  boost::beast::flat_buffer buffer_;
  boost::beast::http::response_parser<boost::beast::http::string_body> parser_;
  std::size_t read_ = 0;
};

/// A running simulated engine, fast unless the test says otherwise.
class engine_fixture {
 public:
  static simulator::settings fast() {
    simulator::settings values;
    values.speed = 200;
    values.eos_probability = 0;
    return values;
  }

  explicit engine_fixture(const simulator::settings& values = fast()) {
    auto started = simulator::start(metrics, values);
    if (!started) throw std::runtime_error(render(started.failure()));
    engine = *std::move(started);
  }

  http_call open(std::string_view method, std::string_view path, std::string body = {},
                 std::string_view id = {}) const {
    return {engine->port(), method, path, std::move(body), id};
  }
  reply post(std::string_view path, const json::object& body, std::string_view id = {}) const {
    return open("POST", path, json::serialize(body), id).finish();
  }
  reply post_text(std::string_view path, std::string body) const {
    return open("POST", path, std::move(body)).finish();
  }
  reply get(std::string_view path) const { return open("GET", path).finish(); }

  /// The value of the metric whose line starts with `name` (with or without labels); nothing if absent.
  std::optional<double> metric(const std::string& name) const {
    const auto text = "\n" + metrics.render();
    for (auto at = text.find("\n" + name); at != std::string::npos; at = text.find("\n" + name, at + 1)) {
      const auto line = text.substr(at + 1, text.find('\n', at + 1) - at - 1);
      if (const auto after = line[name.size()]; after != '{' && after != ' ' && !name.ends_with('}')) continue;
      return std::stod(line.substr(line.rfind(' ') + 1));
    }
    return std::nullopt;
  }
  bool becomes(const std::string& name, double value) const {
    return eventually([&] { return metric(name) == value; });
  }

  metrics_registry metrics;
  std::unique_ptr<simulator::simulated_engine> engine;
};

inline json::object chat_body(std::string_view text, int max_tokens) {
  return {{"model", "sim/llama"},
          {"messages", json::array{{{"role", "user"}, {"content", json::string(text)}}}},
          {"max_tokens", max_tokens}};
}

inline std::string text_of(const json::value& value) { return json::value_to<std::string>(value); }

}  // namespace infernex::test
