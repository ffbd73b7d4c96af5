#include "gateway/json_check.hpp"

namespace infernex::gateway {

namespace od = simdjson::ondemand;

simdjson::error_code check_json(od::value value, int depth, int max_depth) {
  if (depth > max_depth) return simdjson::DEPTH_ERROR;
  od::json_type type;
  if (const auto e = value.type().get(type)) return e;
  switch (type) {
    case od::json_type::array: {
      od::array items;
      if (const auto e = value.get_array().get(items)) return e;
      for (auto item : items) {
        od::value inner;
        if (const auto e = item.get(inner)) return e;
        if (const auto e = check_json(inner, depth + 1, max_depth)) return e;
      }
      return simdjson::SUCCESS;
    }
    case od::json_type::object: {
      od::object members;
      if (const auto e = value.get_object().get(members)) return e;
      for (auto member : members) {
        od::field field;
        if (const auto e = std::move(member).get(field)) return e;
        std::string_view key;
        if (const auto e = field.unescaped_key().get(key)) return e;
        if (const auto e = check_json(field.value(), depth + 1, max_depth)) return e;
      }
      return simdjson::SUCCESS;
    }
    case od::json_type::string:
      return value.get_string().error();
    case od::json_type::number:
      return value.get_double().error();
    case od::json_type::boolean:
      return value.get_bool().error();
    case od::json_type::null: {
      bool null = false;
      if (const auto e = value.is_null().get(null)) return e;
      return null ? simdjson::SUCCESS : simdjson::N_ATOM_ERROR;
    }
  }
  return simdjson::TAPE_ERROR;
}

}  // namespace infernex::gateway
