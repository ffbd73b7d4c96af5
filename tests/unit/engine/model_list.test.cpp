#include "actors/engine/model_list.hpp"

#include <doctest/doctest.h>

namespace {

using infernex::errc;
using infernex::engine::read_model_list;

constexpr auto page = R"({"object":"list","data":[
  {"id":"ada","object":"model","parent":"base"},
  {"id":"base","object":"model","parent":null,"max_model_len":4096},
  {"id":"alias","object":"model","max_model_len":8192}]})";

TEST_CASE("the base model, its context length and the adapters") {
  const auto list = read_model_list(page, "");
  REQUIRE(list.ok());
  CHECK(list->model == "base");
  CHECK(list->max_model_len == 4096);
  CHECK(list->adapters == std::vector<std::string>{"ada"});
  CHECK(read_model_list(page, "alias")->max_model_len == 8192);
}

TEST_CASE("answers that name no usable model") {
  CHECK(read_model_list(page, "other").failure().code == errc::not_found);
  CHECK(read_model_list(page, "ada").failure().code == errc::not_found);
  CHECK(read_model_list(R"({"data":[]})", "").failure().code == errc::not_found);
  CHECK(read_model_list(R"({"data":{}})", "").failure().code == errc::malformed_input);
  CHECK(read_model_list(R"({"data":[)", "").failure().code == errc::malformed_input);
  CHECK(read_model_list("", "").failure().code == errc::malformed_input);
  CHECK_FALSE(read_model_list(R"({"data":[{"id":"m","max_model_len":-1}]})", "")->max_model_len.has_value());
}

}  // namespace
