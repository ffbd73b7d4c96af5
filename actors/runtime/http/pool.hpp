#pragma once

#include <memory>
#include <optional>
#include <unordered_map>
#include <vector>

#include "actors/runtime/http/client.hpp"
#include "actors/runtime/http/server.hpp"
#include "actors/runtime/http/upstream.hpp"

namespace infernex::http {

/// One worker's idle upstream connections. Internal to this folder.
class upstream_pool {
 public:
  upstream_pool(executor on, client_settings settings) : on_(on), settings_(settings), sweeper_(std::in_place, on) {}

  /// The most recently used one that still stands, or null.
  std::shared_ptr<upstream> take(const origin& to);
  void give_back(const origin& to, std::shared_ptr<upstream> idle);
  std::shared_ptr<upstream> make() const { return std::make_shared<upstream>(on_); }
  const client_settings& settings() const { return settings_; }
  /// Closes all; what is given back later is closed too. To be called while the io_context still exists.
  void close();

 private:
  struct entry {
    std::shared_ptr<upstream> connection;
    steady::time_point since;
  };
  struct origin_hash {
    std::size_t operator()(const origin& of) const { return std::hash<std::string>{}(of.host) * 31 + of.port; }
  };

  void sweep();

  executor on_;
  client_settings settings_;
  /// Empty once closed.
  std::optional<timer> sweeper_;
  bool sweeping_ = false;
  std::unordered_map<origin, std::vector<entry>, origin_hash> idle_;
};

/// The pool must live longer than the client's calls.
std::unique_ptr<client> make_pooled_client(upstream_pool& pool);

}  // namespace infernex::http
