#include "nodes/up.hpp"

#include <signal.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <cstdlib>
#include <iostream>
#include <sstream>

#include <boost/asio/steady_timer.hpp>

#include "actors/runtime/http/client.hpp"
#include "actors/runtime/http/server.hpp"
#include "actors/runtime/log.hpp"
#include "nodes/signals.hpp"
#include "nodes/up_plan.hpp"

namespace infernex::nodes {

namespace {

using steady = std::chrono::steady_clock;

std::string own_path() {
  char path[4096];
  const auto size = ::readlink("/proc/self/exe", path, sizeof path);
  return size > 0 ? std::string(path, static_cast<std::size_t>(size)) : "infernex";
}

/// Where a program lies, by PATH and then where Debian puts servers, which an ordinary user's PATH leaves out;
/// empty: nowhere.
std::string find_program(const std::string& name) {
  const char* path = std::getenv("PATH");
  std::istringstream folders(std::string(path ? path : "") + ":/usr/local/sbin:/usr/sbin");
  for (std::string folder; std::getline(folders, folder, ':');) {
    const auto file = folder + "/" + name;
    if (!folder.empty() && ::access(file.c_str(), X_OK) == 0) return file;
  }
  return {};
}

/// Asks the gateway until a chat request would succeed.
http::task<> probe_ready(http::worker& on, std::uint16_t port, std::atomic<bool>& ready) {
  http::asio::steady_timer timer(on.context());
  http::call_options options;
  options.connect_timeout = options.response_timeout = std::chrono::milliseconds(500);
  // Named, not braced in place: g++ 12 rejects a braced list inside a co_await expression.
  const http::origin gateway{"127.0.0.1", port};
  http::outgoing question;
  question.target = "/readyz";
  while (!ready) {
    const auto answer = co_await on.upstream().fetch(gateway, question, options, 64 << 10);
    if (answer && answer->status == 200) {
      ready = true;
      co_return;
    }
    timer.expires_after(std::chrono::milliseconds(100));
    co_await timer.async_wait(http::use_task);
  }
}

void print_ready(const node_settings& settings, const stack& running) {
  const auto base = "http://127.0.0.1:" + std::to_string(settings.gateway.port);
  std::cout << "ready " << base << "\n\n"
            << "  curl -s " << base << "/v1/chat/completions -H 'Content-Type: application/json' -d "
            << "'{\"model\":\"" << settings.simulator.model
            << "\",\"max_tokens\":32,\"messages\":[{\"role\":\"user\",\"content\":\"Hello\"}]}'\n"
            << "  nats -s " << running.nats_url << " sub '" << settings.bus.prefix << ".>' --translate '" << own_path()
            << " decode'\n"
            << "  " << own_path() << " sub '" << settings.bus.prefix << ".>' --nats " << running.nats_url << "\n"
            << std::endl;
}

/// Ends the processes one after the other, last started first, within the deadline all in all.
void shut_down(std::vector<child>& children, std::chrono::milliseconds deadline) {
  const auto until = steady::now() + deadline;
  for (auto one = children.rbegin(); one != children.rend(); ++one) {
    one->signal(SIGTERM);
    // Late or not, each gets a moment to end by itself.
    const auto kill_at = std::max(until, steady::now() + std::chrono::seconds(1));
    while (one->pid() && !one->reap(steady::now(), true)) {
      if (steady::now() > kill_at) one->signal(SIGKILL);
      wait_signal(std::chrono::milliseconds(50));
    }
  }
}

}  // namespace

int up(node_settings settings, const std::string& config_file) {
  block_signals();
  log::configure(settings.log_level, "up");
  const auto nats_server = find_program("nats-server");
  if (nats_server.empty() && settings.up.nats.empty()) {
    std::cerr << "infernex up: no nats-server in PATH; install it, or name a running one with --nats URL\n";
    return 1;
  }
  auto running = plan(settings, config_file, own_path(), nats_server);
  for (auto& one : running.children) one.start_if_due(steady::now());

  std::atomic<bool> ready{false};
  bool announced = false;
  int exit_code = 0;
  {
    http::io_threads probing(1);
    probing.at(0).spawn(probe_ready(probing.at(0), settings.gateway.port, ready));
    for (;;) {
      const auto number = wait_signal(std::chrono::milliseconds(20));
      if (number == SIGINT || number == SIGTERM) break;
      const auto now = steady::now();
      for (auto& one : running.children) {
        one.reap(now, false);
        one.start_if_due(now);
        if (one.failed()) exit_code = 1;
      }
      if (exit_code != 0) break;
      if (ready && !announced) {
        announced = true;
        print_ready(settings, running);
      }
    }
    ready = true;  // ends the probing
  }
  shut_down(running.children, settings.drain_deadline + std::chrono::seconds(10));
  return exit_code;
}

}  // namespace infernex::nodes
