#include <doctest/doctest.h>

#include "actors/runtime/http/head.hpp"
#include "actors/runtime/http/server.hpp"

using namespace infernex;
using namespace infernex::http;

namespace {

std::string parsed(std::string_view text) {
  const auto got = parse_url(text);
  if (!got) return std::string(name(got.failure().code));
  return got->at.host + "|" + std::to_string(got->at.port) + "|" + got->path;
}

}  // namespace

TEST_CASE("urls") {
  CHECK(parsed("http://engine") == "engine|80|");
  CHECK(parsed("http://engine:8000") == "engine|8000|");
  CHECK(parsed("http://engine:8000/") == "engine|8000|/");
  CHECK(parsed("http://127.0.0.1:65535/v1/models?x=y#part") == "127.0.0.1|65535|/v1/models?x=y");
  CHECK(parsed("http://engine?x=y") == "engine|80|/?x=y");
  CHECK(parsed("http://[::1]:9/a") == "::1|9|/a");
  CHECK(parsed("http://[fe80::1]") == "fe80::1|80|");
  for (const auto* bad :
       {"", "engine:8000", "https://engine", "ftp://engine", "http://", "http://:80", "http:///path",
        "http://e:", "http://e:0", "http://e:65536", "http://e:80x", "http://e:-1", "http://[::1", "http://[]:80",
        "http://[::1]x", "http://user@e", "http://e/a b", "http://e/\r\nX: y", "http://a:b:c"}) {
    CAPTURE(bad);
    CHECK(parsed(bad) == "invalid_request");
  }
  CHECK(parse_url("https://engine").failure().detail.find("https is not supported") != std::string::npos);
}

TEST_CASE("fields are found whatever their case, the first of several") {
  const fields in{{"Content-Type", "a"}, {"content-type", "b"}, {"X", ""}};
  CHECK(find(in, "CONTENT-TYPE") == "a");
  CHECK(find(in, "x").empty());
  CHECK(find(in, "Content").empty());
  CHECK(find({}, "a").empty());
}

TEST_CASE("errors have OpenAI's shape and valid JSON whatever the message") {
  CHECK(openai_error(400, "no model") ==
        R"({"error":{"message":"no model","type":"invalid_request_error","param":null,"code":null}})");
  CHECK(openai_error(404, "m", "model_not_found", "model") ==
        R"({"error":{"message":"m","type":"not_found_error","param":"model","code":"model_not_found"}})");
  CHECK(openai_error(503, "busy", {}, {}, "overloaded_error") ==
        R"({"error":{"message":"busy","type":"overloaded_error","param":null,"code":null}})");
  CHECK(openai_error(400, "q\" b\\ n\n r\r t\t \x01\x1f \xc3\xa9 \xf0\x9f\x98\x80")
            .find(R"("q\" b\\ n\n r\r t\t \u0001\u001f )"
                  "\xc3\xa9 \xf0\x9f\x98\x80\"") != std::string::npos);
  // Not UTF-8: a lone byte, an overlong '/', a surrogate, a sequence cut off.
  CHECK(openai_error(400, "\xff|\xc0\xaf|\xed\xa0\x80|\xe2\x82")
            .find("\"\xef\xbf\xbd|\xef\xbf\xbd\xef\xbf\xbd|\xef\xbf\xbd\xef\xbf\xbd\xef\xbf\xbd|"
                  "\xef\xbf\xbd\xef\xbf\xbd\"") != std::string::npos);
}

TEST_CASE("the error's type follows the status") {
  const auto type_is = [](unsigned status, std::string_view type) {
    return openai_error(status, "m").find("\"type\":\"" + std::string(type) + "\"") != std::string::npos;
  };
  CHECK(type_is(400, "invalid_request_error"));
  CHECK(type_is(401, "authentication_error"));
  CHECK(type_is(403, "permission_error"));
  CHECK(type_is(404, "not_found_error"));
  CHECK(type_is(408, "timeout_error"));
  CHECK(type_is(413, "invalid_request_error"));
  CHECK(type_is(429, "rate_limit_error"));
  CHECK(type_is(500, "server_error"));
  CHECK(type_is(503, "server_error"));
  CHECK(type_is(504, "server_error"));
}

TEST_CASE("a request's head") {
  std::string head;
  append_request_head(head, {"engine", 80}, "GET", "/health", {{"Accept", "*/*"}, {"Host", "other"}}, 0);
  CHECK(head == "GET /health HTTP/1.1\r\nHost: engine\r\nConnection: keep-alive\r\nAccept: */*\r\n\r\n");
  head.clear();
  append_request_head(head, {"::1", 8000}, "POST", "/", {}, 0);
  CHECK(head == "POST / HTTP/1.1\r\nHost: [::1]:8000\r\nConnection: keep-alive\r\nContent-Length: 0\r\n\r\n");
}

TEST_CASE("a response's head") {
  std::string head;
  append_response_head(head, {.status = 200, .content_type = "a/b", .body = framing::chunked, .keep_alive = false},
                       {{"X", "y"}, {"Transfer-Encoding", "gzip"}, {"Bad Name", "z"}, {"N", "line\nbreak"}});
  CHECK(head.starts_with("HTTP/1.1 200 OK\r\nDate: "));
  CHECK(head.ends_with(" GMT\r\nContent-Type: a/b\r\nX: y\r\nTransfer-Encoding: chunked\r\nConnection: close\r\n\r\n"));
  head.clear();
  append_response_head(head, {.status = 204, .content_type = {}, .body = framing::none}, {});
  CHECK(head.find("Content-Length") == std::string::npos);
  CHECK(head.starts_with("HTTP/1.1 204 No Content\r\n"));
}

TEST_CASE("what may stand in a request line") {
  CHECK(valid_target("/v1/models?a=b"));
  CHECK(valid_target("*"));
  CHECK_FALSE(valid_target(""));
  CHECK_FALSE(valid_target("v1"));
  CHECK_FALSE(valid_target("/a b"));
  CHECK_FALSE(valid_target("/a\r\nX: y"));
  CHECK(valid_method("POST"));
  CHECK_FALSE(valid_method(""));
  CHECK_FALSE(valid_method("GET /"));
}
