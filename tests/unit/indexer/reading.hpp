#pragma once

#include <optional>
#include <string>
#include <string_view>

#include <doctest/doctest.h>

#include "actors/indexer/request_body.hpp"

namespace infernex::indexer {

/// One of the functions that read a request's body.
template <class Value>
using body_reader = std::optional<refusal> (*)(std::string_view, Value&);

/// What the reader says is wrong; empty: nothing.
template <class Value>
std::string mistake_in(std::string_view body, body_reader<Value> read) {
  Value into;
  const auto problem = read(body, into);
  return problem ? problem->message : "";
}

/// What a body says that must be right.
template <class Value>
Value read_right(std::string_view body, body_reader<Value> read) {
  Value into;
  const auto problem = read(body, into);
  REQUIRE_MESSAGE(!problem, problem->message);
  return into;
}

}  // namespace infernex::indexer
