#pragma once

// Which engine a session was served by last.

#include <chrono>
#include <functional>
#include <list>
#include <string>
#include <string_view>
#include <unordered_map>

#include "actors/router/load_board.hpp"

namespace infernex::router::plugins {

/// A bounded number of sessions, each forgotten when unused for long; over the bound the one unused longest goes.
class session_book {
 public:
  struct limits {
    std::chrono::duration<double> unused{300};
    std::uint32_t sessions = 65'536;
  };
  void set_limits(limits l) { limits_ = l; }

  /// The engine's name; empty: none known. A session of the same name is another one for another model.
  std::string_view find(std::string_view model, std::string_view session, clock_point now) {
    forget_old(now);
    const auto known = by_name_.find(name_of(model, session));
    return known == by_name_.end() ? std::string_view{} : known->second->instance;
  }

  void bind(std::string_view model, std::string_view session, std::string_view instance, clock_point now) {
    forget_old(now);
    const auto name = name_of(model, session);
    if (const auto known = by_name_.find(name); known != by_name_.end()) {
      known->second->instance = instance;
      known->second->used = now;
      latest_first_.splice(latest_first_.begin(), latest_first_, known->second);
      return;
    }
    if (by_name_.size() >= limits_.sessions) forget_last();
    latest_first_.push_front({name, std::string(instance), now});
    by_name_[name] = latest_first_.begin();
  }

  std::size_t size() const { return by_name_.size(); }

 private:
  struct binding {
    std::size_t name;
    std::string instance;
    clock_point used;
  };

  static std::size_t name_of(std::string_view model, std::string_view session) {
    const std::hash<std::string_view> hash;
    // The model's hash is spread, so that exchanging the two names is another name.
    return hash(session) ^ (hash(model) * 0x9e3779b97f4a7c15ULL + 1);
  }

  void forget_last() {
    by_name_.erase(latest_first_.back().name);
    latest_first_.pop_back();
  }
  void forget_old(clock_point now) {
    while (!latest_first_.empty() && now - latest_first_.back().used > limits_.unused) forget_last();
  }

  limits limits_;
  std::list<binding> latest_first_;
  std::unordered_map<std::size_t, std::list<binding>::iterator> by_name_;
};

}  // namespace infernex::router::plugins
