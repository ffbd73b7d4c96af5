#pragma once

#include <functional>
#include <memory>
#include <sstream>
#include <string>

#include <boost/asio/ip/tcp.hpp>
#include <boost/json.hpp>
#include <doctest/doctest.h>

#include "actors/indexer/actor.hpp"
#include "tests/support/nats_server.hpp"

namespace infernex::test {

inline std::unique_ptr<bus> connect(const nats_server& server, metrics_registry& metrics) {
  bus_settings how;
  how.url = server.url();
  how.reconnect_wait = std::chrono::milliseconds(50);
  auto made = bus::connect(how, metrics);
  REQUIRE(made);
  return *std::move(made);
}

struct http_answer {
  int status = 0;
  std::string head;
  std::string body;
  boost::json::value json() const { return boost::json::parse(body); }
};

inline http_answer call(std::uint16_t port, const std::string& method, const std::string& path,
                        const std::string& body = {}) {
  boost::asio::ip::tcp::iostream connection("127.0.0.1", std::to_string(port));
  connection << method << ' ' << path
             << " HTTP/1.1\r\nHost: test\r\nConnection: close\r\nContent-Length: " << body.size() << "\r\n\r\n"
             << body << std::flush;
  std::ostringstream all;
  all << connection.rdbuf();
  const auto text = all.str();
  const auto end = text.find("\r\n\r\n");
  if (text.size() < 12 || end == std::string::npos) return {};
  return {std::stoi(text.substr(9, 3)), text.substr(0, end), text.substr(end + 4)};
}

/// One indexer with a bus connection of its own, as in a process of its own.
struct replica {
  replica(const nats_server& server, std::string name, indexer::registrar engines = {},
          std::function<void(indexer::settings&)> adapt = {})
      : messages(connect(server, metrics)), process{system, *messages, metrics, std::move(name), 1} {
    indexer::settings how;
    how.admin_port = port;
    how.tracking.sync.patience = std::chrono::milliseconds(200);
    how.tracking.sync.answer_timeout = std::chrono::milliseconds(300);
    if (adapt) adapt(how);
    auto made = indexer::start(process, how, std::make_shared<indexer::index_set>(how.index), std::move(engines));
    REQUIRE(made);
    running = *std::move(made);
  }
  ~replica() {
    running->stop(std::chrono::seconds(2));
    running.reset();
    messages->close(std::chrono::seconds(1));
  }
  bool ready() const { return call(port, "GET", "/readyz").status == 200; }

  metrics_registry metrics;
  std::unique_ptr<bus> messages;
  actor_config config;
  caf::actor_system system{config};
  runtime process;
  std::uint16_t port = free_port();
  std::unique_ptr<role> running;
};

}  // namespace infernex::test
