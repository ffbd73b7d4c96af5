#pragma once

#include <atomic>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <string>
#include <string_view>

#include "actors/runtime/http/server.hpp"
#include "actors/runtime/http/waiter.hpp"

namespace infernex::proxy {

/// A decode engine's call for its prefill, on the way to the exchange it belongs to and back.
struct metaserver_call : std::enable_shared_from_this<metaserver_call> {
  std::string request_id;
  std::string params;

  /// From any thread, once; later answers are ignored.
  void answer(unsigned status, std::string body);

 private:
  friend class metaserver;
  http::worker* caller = nullptr;
  std::atomic<bool> answered{false};
  // On the caller's thread.
  http::waiter* waiting = nullptr;
  unsigned status_ = 0;
  std::string body_;
};

/// Where decode engines of the layer-wise protocol ask for their prefill; shared by a process's threads. The table is
/// behind a lock that is held for a look-up: a call a request, not one a token.
class metaserver {
 public:
  /// Runs on the exchange's own thread.
  using receiver = std::function<void(std::shared_ptr<metaserver_call>)>;

  /// Expects calls for `id` (letters and digits) until remove().
  void add(const std::string& id, http::worker& on, receiver to);
  void remove(const std::string& id);

  /// Answers POST /v1/metaserver.
  http::task<void> serve(http::worker& on, http::request& in, http::responder& out, std::chrono::milliseconds limit);

 private:
  struct entry {
    http::worker* on;
    receiver to;
  };
  std::mutex guard_;
  std::map<std::string, entry, std::less<>> waiting_;
};

}  // namespace infernex::proxy
