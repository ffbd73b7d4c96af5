#pragma once

#include <cstdint>
#include <limits>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include <boost/json/object.hpp>

#include "actors/simulator/openai_request.hpp"

namespace infernex::simulator {

/// Reads typed fields of a JSON object and keeps the first thing that is wrong. Null counts as absent.
class json_fields {
 public:
  explicit json_fields(const boost::json::object& body) : body_(body) {}

  const boost::json::value* find(std::string_view name) const;
  std::optional<bool> boolean(std::string_view name);
  std::optional<std::uint64_t> integer(std::string_view name, std::uint64_t least = 0,
                                       std::uint64_t most = std::numeric_limits<std::uint32_t>::max());
  std::optional<double> number(std::string_view name, double least, double most);
  std::optional<std::string> text(std::string_view name);
  /// One text or a list of them.
  std::vector<std::string> texts(std::string_view name, std::size_t most);

  void refuse(std::string_view name, std::string message, unsigned status = 400);
  void refuse_type(std::string_view name, std::string_view expected, const boost::json::value& got);
  const std::optional<refusal>& problem() const { return problem_; }

 private:
  const boost::json::object& body_;
  std::optional<refusal> problem_;
};

}  // namespace infernex::simulator
