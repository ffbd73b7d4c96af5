#pragma once

#include <functional>
#include <memory>

#include "actors/runtime/http/server.hpp"

namespace infernex {
class metrics_registry;
}

namespace infernex::http {

/// The HTTP endpoint of roles that have none of their own: GET /metrics (Prometheus text format 0.0.4), /healthz
/// (200 while the process answers) and /readyz (200 or 503, as `ready` says). `ready` is called on an I/O thread
/// and has to be thread-safe; an empty one means always. The registry outlives the server. Errors: those of
/// server::listen.
result<std::unique_ptr<server>> serve_admin(io_threads& threads, server_settings settings,
                                            const metrics_registry& metrics, std::function<bool()> ready);

/// The same answers for roles with an endpoint of their own; false if the request is none of the three.
task<bool> answer_admin(const metrics_registry& metrics, const std::function<bool()>& ready, const request& in,
                        responder& out);

}  // namespace infernex::http
