#pragma once

#include <utility>
#include <variant>

#include "messages/errc.hpp"

namespace infernex {

/// A value or an error: what pure code returns instead of throwing.
template <class T>
class [[nodiscard]] result {
 public:
  result(T value) : state_(std::in_place_index<0>, std::move(value)) {}             // NOLINT: converts on purpose
  result(error problem) : state_(std::in_place_index<1>, std::move(problem)) {}     // NOLINT
  result(errc code) : state_(std::in_place_index<1>, infernex::error{code, {}}) {}  // NOLINT

  explicit operator bool() const { return state_.index() == 0; }
  bool ok() const { return state_.index() == 0; }

  /// Precondition: ok().
  T& operator*() & { return std::get<0>(state_); }
  const T& operator*() const& { return std::get<0>(state_); }
  T&& operator*() && { return std::get<0>(std::move(state_)); }
  T* operator->() { return &std::get<0>(state_); }
  const T* operator->() const { return &std::get<0>(state_); }

  /// Precondition: !ok().
  const infernex::error& failure() const { return std::get<1>(state_); }

 private:
  std::variant<T, infernex::error> state_;
};

}  // namespace infernex
