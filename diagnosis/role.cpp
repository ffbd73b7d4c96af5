#include "actors/runtime/config_watch.hpp"
#include "actors/runtime/http/admin.hpp"
#include "actors/runtime/log.hpp"
#include "actors/runtime/supervisor.hpp"
#include "diagnosis/actor.hpp"
#include "diagnosis/knowledge_base.hpp"

namespace infernex::diagnosis {
namespace {

struct page_context {
  std::shared_ptr<diagnosis_facts> facts;
  const metrics_registry& metrics;
  std::function<bool()> ready;
};

/// `?node=NAME`; names of nodes need no escape but %XX.
std::string asked_node(std::string_view target) {
  constexpr std::string_view key = "?node=";
  const auto at = target.find(key);
  if (at == target.npos) return {};
  std::string out;
  const auto text = target.substr(at + key.size());
  for (std::size_t i = 0; i < text.size() && text[i] != '&'; ++i) {
    if (text[i] == '%' && i + 2 < text.size()) {
      out += static_cast<char>(std::strtol(std::string(text.substr(i + 1, 2)).c_str(), nullptr, 16));
      i += 2;
    } else {
      out += text[i];
    }
  }
  return out;
}

http::task<void> answer(std::shared_ptr<const page_context> at, const http::request& in, http::responder& out) {
  if (co_await http::answer_admin(at->metrics, at->ready, in, out)) co_return;
  const bool known = in.path == "/report" || in.path == "/report.txt" || in.path == "/verdicts";
  published<fleet_report>::reader reader(at->facts->report);
  const auto* now = reader.get();
  if (!known || in.method != "GET" || now == nullptr) {
    const unsigned status = !known ? 404 : now == nullptr ? 503 : 405;
    const auto body = http::openai_error(status, "GET /report, /report.txt, /verdicts, /metrics, /healthz or /readyz");
    co_await out.send(status, "application/json", body);
    co_return;
  }
  auto told = *now;
  if (const auto node = asked_node(in.target); !node.empty()) {
    const auto other = [&node](const verdict_ref& one) { return one->who.node != node; };
    std::erase_if(told.standing, other);
    std::erase_if(told.past, other);
  }
  const std::string body = in.path == "/report"       ? report_html(told)
                           : in.path == "/report.txt" ? report_text(told)
                                                      : report_json(told);
  const std::string_view type = in.path == "/report"       ? "text/html; charset=utf-8"
                                : in.path == "/report.txt" ? "text/plain; charset=utf-8"
                                                           : "application/json";
  co_await out.send(200, type, body);
}

class running_diagnosis final : public diagnosis_role {
 public:
  running_diagnosis(const runtime& process, const settings& how, std::shared_ptr<const knowledge> base)
      : process_(process), facts_(std::make_shared<diagnosis_facts>(process, how, std::move(base))) {
    child_spec spec{"diagnosis", [this, how](caf::actor_system&) {
                      auto actor = spawn_diagnosis_actor(process_, how, facts_);
                      actor_.set(actor);
                      return caf::actor_cast<caf::strong_actor_ptr>(actor);
                    }};
    supervisor_ = caf::actor_cast<caf::strong_actor_ptr>(
        spawn_supervisor(process_.system, process_.metrics, {std::move(spec)}, {}, process_.give_up));
    for (const auto& one : {how.knowledge, how.overrides}) {
      if (one.empty()) continue;
      watches_.push_back(std::make_unique<config_watch>(
          process_.metrics, config_watch::settings{"diagnosis", one, config::stamp_of(one), {}},
          [this, how] { return reload(how); }));
    }
  }
  ~running_diagnosis() override { stop(std::chrono::seconds(2)); }

  error serve(const settings& how) {
    if (!how.admin_port) return {};
    threads_ = std::make_unique<http::io_threads>(1);
    http::server_settings server;
    server.address = how.admin_address;
    server.port = *how.admin_port;
    const auto at = std::make_shared<const page_context>(
        page_context{facts_, process_.metrics, [&connection = process_.messages] { return connection.connected(); }});
    auto listening = http::server::listen(
        *threads_, server,
        [at](http::worker&, http::request& in, http::responder& out) { return answer(at, in, out); });
    if (!listening) return listening.failure();
    server_ = *std::move(listening);
    log::info("diagnosis listens", {{"address", how.admin_address}, {"port", server_->port()}});
    return {};
  }

  std::optional<std::uint16_t> port() const override { return server_ ? std::optional(server_->port()) : std::nullopt; }

  void stop(std::chrono::milliseconds deadline) override {
    if (!supervisor_) return;
    watches_.clear();
    if (server_) server_->drain(deadline);
    if (threads_) threads_->stop();
    const auto actor = caf::actor_cast<caf::strong_actor_ptr>(actor_.get());
    actor_.set({});
    stop_and_wait(process_.system, std::exchange(supervisor_, nullptr), deadline);
    stop_and_wait(process_.system, actor, deadline);
    server_.reset();
    threads_.reset();
  }

 private:
  config_watch::outcome reload(const settings& how) {
    config_watch::outcome out;
    const auto loaded = load_knowledge(how.knowledge, how.overrides);
    for (const auto& one : loaded.problems) out.problems.push_back(config::render(one));
    if (loaded.base) actor_.send(loaded.base);
    return out;
  }

  runtime process_;
  std::shared_ptr<diagnosis_facts> facts_;
  current_actor<diagnosis_actor> actor_;
  caf::strong_actor_ptr supervisor_;
  std::unique_ptr<http::io_threads> threads_;
  std::unique_ptr<http::server> server_;
  std::vector<std::unique_ptr<config_watch>> watches_;
};

}  // namespace

result<std::unique_ptr<diagnosis_role>> start(const runtime& process, const settings& how) {
  auto loaded = load_knowledge(how.knowledge, how.overrides);
  for (const auto& one : loaded.problems) log::error("knowledge base", {{"problem", config::render(one)}});
  if (!loaded.base) return error{errc::invalid_request, "the knowledge base has mistakes"};
  auto made = std::make_unique<running_diagnosis>(process, how, std::move(loaded.base));
  if (auto problem = made->serve(how); problem.code != errc::none) return problem;
  return std::unique_ptr<diagnosis_role>(std::move(made));
}

}  // namespace infernex::diagnosis
