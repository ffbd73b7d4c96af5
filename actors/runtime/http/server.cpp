#include "actors/runtime/http/server.hpp"

#include <sys/socket.h>

#include <thread>

#include <boost/asio/co_spawn.hpp>
#include <boost/asio/post.hpp>

#include "actors/runtime/http/connection.hpp"
#include "actors/runtime/log.hpp"

namespace infernex::http {

namespace {

constexpr unsigned most_turned_away_at_once = 64;
constexpr std::chrono::milliseconds accept_pause{100};
/// How long handlers get to return once they have been cancelled.
constexpr std::chrono::milliseconds unwind_time{2'000};

using reuse_port = asio::detail::socket_option::boolean<SOL_SOCKET, SO_REUSEPORT>;
using lanes = std::vector<std::shared_ptr<lane>>;

std::size_t total(const lanes& of, std::atomic<std::size_t> lane::*count) {
  std::size_t sum = 0;
  for (const auto& l : of) sum += ((*l).*count).load();
  return sum;
}

/// The other workers' lanes are counted too, so a lane needs to see them all.
struct acceptor_state {
  std::shared_ptr<lane> home;
  std::shared_ptr<const lanes> all;
};

void start(const acceptor_state& in, tcp_socket socket) {
  auto& home = *in.home;
  home.accepted.fetch_add(1, std::memory_order_relaxed);
  const bool full = total(*in.all, &lane::open) >= home.settings.max_connections;
  if (full) home.turned_away.fetch_add(1, std::memory_order_relaxed);
  if (full && home.turned_away_now >= most_turned_away_at_once) return;
  auto accepted = std::make_shared<connection>(std::move(socket), in.home);
  home.on.spawn(full ? connection::turn_away(std::move(accepted)) : connection::serve(std::move(accepted)));
}

task<void> accept_all(acceptor_state in) {
  auto& acceptor = in.home->acceptor;
  while (acceptor.is_open()) {
    error_code problem;
    tcp_socket socket = co_await acceptor.async_accept(asio::redirect_error(use_task, problem));
    if (!problem) {
      start(in, std::move(socket));
    } else if (problem != asio::error::operation_aborted && problem != asio::error::connection_aborted) {
      // Out of descriptors or memory: the waiting connections stay in the kernel's queue meanwhile.
      static log::limiter failures;
      if (const auto repeated = failures.admit())
        log::error("cannot accept connections", {{"problem", problem.message()}, {"repeated", repeated}});
      timer pause(acceptor.get_executor(), accept_pause);
      error_code woken;
      co_await pause.async_wait(asio::redirect_error(use_task, woken));
    }
  }
}

/// Takes what the kernel has already accepted for us, so that closing the listener resets nobody.
void accept_the_waiting(const acceptor_state& in) {
  auto& acceptor = in.home->acceptor;
  error_code problem;
  acceptor.non_blocking(true, problem);
  while (!problem) {
    tcp_socket socket(acceptor.get_executor());
    acceptor.accept(socket, problem);
    if (!problem) start(in, std::move(socket));
  }
}

std::vector<std::shared_ptr<connection>> alive(lane& home) {
  std::vector<std::shared_ptr<connection>> held;
  held.reserve(home.connections.size());
  for (connection* c : home.connections)
    if (auto strong = c->weak_from_this().lock()) held.push_back(std::move(strong));
  return held;
}

void stop_accepting(const acceptor_state& in) {
  auto& home = *in.home;
  if (home.draining) return;
  accept_the_waiting(in);
  home.draining = true;
  error_code ignored;
  home.acceptor.close(ignored);
}

void close_idle(lane& home) {
  for (const auto& c : alive(home))
    if (c->idle()) c->cancel();
}

void close_every(lane& home) {
  for (const auto& c : alive(home)) c->cancel();
}

result<tcp::endpoint> resolve(asio::io_context& context, const server_settings& settings) {
  error_code problem;
  const auto address = asio::ip::make_address(settings.address, problem);
  if (!problem) return tcp::endpoint(address, settings.port);
  asio::ip::basic_resolver<tcp, executor> resolver(context.get_executor());
  const auto found = resolver.resolve(settings.address, std::to_string(settings.port), problem);
  if (problem || found.empty()) return error{errc::system_error, settings.address + ": " + problem.message()};
  return found.begin()->endpoint();
}

error_code bind_to(tcp_acceptor& acceptor, const tcp::endpoint& to, bool shared) {
  error_code problem;
  acceptor.open(to.protocol(), problem);
  if (!problem) acceptor.set_option(asio::socket_base::reuse_address(true), problem);
  if (!problem && shared) acceptor.set_option(reuse_port(true), problem);
  if (!problem) acceptor.bind(to, problem);
  return problem;
}

}  // namespace

struct server::impl {
  std::shared_ptr<lanes> all = std::make_shared<lanes>();
  std::uint16_t port = 0;

  void on_each(void (*action)(const acceptor_state&)) {
    for (const auto& l : *all) asio::post(l->on.context(), [in = acceptor_state{l, all}, action] { action(in); });
  }
  bool threads_run() const {
    return std::none_of(all->begin(), all->end(), [](const auto& l) { return l->on.context().stopped(); });
  }
  /// Polling is good enough for the few moments of a shutdown, and keeps the request path free of signals.
  template <class Condition>
  bool wait(std::chrono::milliseconds limit, Condition condition) const {
    const auto deadline = steady::now() + limit;
    while (!condition()) {
      if (!threads_run() || steady::now() >= deadline) return false;
      std::this_thread::sleep_for(std::chrono::milliseconds(1));
    }
    return true;
  }
};

server::server(std::shared_ptr<impl> state) : impl_(std::move(state)) {}

server::~server() { drain(std::chrono::milliseconds(0)); }

result<std::unique_ptr<server>> server::listen(io_threads& threads, server_settings settings, handler handle) {
  auto& first = threads.at(0).context();
  auto at = resolve(first, settings);
  if (!at) return at.failure();
  const auto failed = [&](const error_code& problem) {
    return error{errc::system_error, settings.address + ":" + std::to_string(settings.port) + ": " + problem.message()};
  };
  // SO_REUSEPORT would let us share the port with another process of the same user without a word; a socket
  // without it finds out.
  {
    tcp_acceptor probe(first.get_executor());
    if (const auto problem = bind_to(probe, *at, false)) return failed(problem);
    at->port(probe.local_endpoint().port());
  }
  auto state = std::make_shared<impl>();
  state->port = at->port();
  for (unsigned i = 0; i < threads.size(); ++i) {
    auto added = std::make_shared<lane>(threads.at(i), settings, handle);
    if (const auto problem = bind_to(added->acceptor, *at, true)) return failed(problem);
    state->all->push_back(std::move(added));
  }
  for (const auto& l : *state->all) {
    error_code problem;
    l->acceptor.listen(asio::socket_base::max_listen_connections, problem);
    if (problem) return failed(problem);
  }
  for (const auto& l : *state->all) l->on.spawn(accept_all({l, state->all}));
  return std::unique_ptr<server>(new server(std::move(state)));
}

std::uint16_t server::port() const { return impl_->port; }
std::size_t server::active_requests() const { return total(*impl_->all, &lane::active); }
std::size_t server::open_connections() const { return total(*impl_->all, &lane::open); }

server_counts server::counts() const {
  server_counts sum;
  for (const auto& l : *impl_->all) {
    sum.accepted += l->accepted.load(std::memory_order_relaxed);
    sum.turned_away += l->turned_away.load(std::memory_order_relaxed);
    sum.requests += l->requests.load(std::memory_order_relaxed);
    sum.rejected += l->rejected.load(std::memory_order_relaxed);
    sum.failures += l->failures.load(std::memory_order_relaxed);
  }
  return sum;
}

bool server::drain(std::chrono::milliseconds deadline) {
  auto& all = *impl_->all;
  auto stopped = std::make_shared<std::atomic<std::size_t>>(0);
  for (const auto& l : all)
    asio::post(l->on.context(), [in = acceptor_state{l, impl_->all}, stopped] {
      stop_accepting(in);
      // After the reads that are done already but not delivered yet.
      asio::post(in.home->on.context(), [in, stopped] {
        close_idle(*in.home);
        stopped->fetch_add(1);
      });
    });
  const bool answered = impl_->wait(std::max(deadline, unwind_time), [&] { return stopped->load() == all.size(); });
  const bool finished = answered && impl_->wait(deadline, [&] { return total(all, &lane::busy) == 0; });
  impl_->on_each([](const acceptor_state& in) { close_every(*in.home); });
  impl_->wait(unwind_time, [&] { return total(all, &lane::open) == 0; });
  return finished;
}

}  // namespace infernex::http
