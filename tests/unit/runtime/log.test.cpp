#include "actors/runtime/log.hpp"

#include <unistd.h>

#include <cstdio>
#include <regex>
#include <string>
#include <thread>
#include <vector>

#include <doctest/doctest.h>

namespace infernex::log {

namespace {

/// What goes to stderr while it lives.
class captured_stderr {
 public:
  captured_stderr() : file_(std::tmpfile()), saved_(::dup(2)) {
    REQUIRE(file_ != nullptr);
    std::fflush(stderr);
    ::dup2(::fileno(file_), 2);
  }
  ~captured_stderr() {
    restore();
    std::fclose(file_);
  }
  std::string text() {
    restore();
    std::string all;
    std::rewind(file_);
    for (int c = std::fgetc(file_); c != EOF; c = std::fgetc(file_)) all += static_cast<char>(c);
    return all;
  }

 private:
  void restore() {
    if (saved_ < 0) return;
    std::fflush(stderr);
    ::dup2(saved_, 2);
    ::close(saved_);
    saved_ = -1;
  }
  std::FILE* file_;
  int saved_;
};

/// Leaves the logger of this process as it was.
struct restored_logger {
  ~restored_logger() { configure(level::info, "infernex"); }
};

constexpr auto second = std::chrono::seconds(1);
const auto start = std::chrono::steady_clock::time_point(std::chrono::hours(1));

}  // namespace

TEST_CASE("values are quoted where they need it, and a line stays one line") {
  CHECK(render(level::info, "agent/engine-0", "engine is ready", {{"instance", "e0"}, {"port", 8000}}) ==
        "info agent/engine-0 engine is ready instance=e0 port=8000");
  CHECK(render(level::warn, "router", "x", {{"a", ""}, {"b", "two words"}, {"c", "k=v"}, {"d", "say \"hi\" \\"}}) ==
        R"(warn router x a="" b="two words" c="k=v" d="say \"hi\" \\")");
  CHECK(render(level::error, "router", "first\nsecond", {{"a", "1\n2\r3\t4"}, {"b", "\x1b[31m"}, {"c", "\x7f"}}) ==
        R"(error router first\nsecond a="1\n2\r3\t4" b="\x1b[31m" c="\x7f")");
  CHECK(render(level::debug, "router", "x", {{"ratio", 0.125}, {"big", UINT64_MAX}, {"minus", -3}, {"name", "日本"}}) ==
        "debug router x ratio=0.125 big=18446744073709551615 minus=-3 name=日本");
}

TEST_CASE("long values are cut between characters") {
  const auto line = render(level::info, "i", "e", {{"v", std::string(1023, 'a') + "日" + std::string(5000, 'b')}});
  CHECK(line == "info i e v=\"" + std::string(1023, 'a') + "...\"");
}

TEST_CASE("lines go to stderr with a UTC time stamp, from the threshold on") {
  const restored_logger after;
  captured_stderr output;
  configure(level::warn, "router");
  info("not shown");
  warn("shown {} %s", {{"n", 1}});  // no format string
  configure(level::off, "router");
  error("not shown either");
  const auto text = output.text();
  CAPTURE(text);
  CHECK(
      std::regex_match(text, std::regex(R"(\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}Z warn router shown \{\} %s n=1\n)")));
  CHECK(threshold() == level::off);
}

TEST_CASE("the limiter admits one an interval, with the number held back") {
  limiter bad(5 * second);
  CHECK(bad.admit(start) == 1);
  CHECK(bad.admit(start + 1 * second) == 0);
  CHECK(bad.admit(start + 4 * second) == 0);
  CHECK(bad.admit(start + 5 * second) == 3);
  CHECK(bad.admit(start + 9 * second) == 0);
  CHECK(bad.admit(start + 100 * second) == 2);
}

TEST_CASE("under threads the limiter loses and repeats nothing") {
  constexpr int threads = 4;
  constexpr int each = 20'000;
  limiter bad(10 * second);
  std::atomic<std::uint64_t> counted{0};
  std::atomic<int> lines{0};
  std::vector<std::thread> workers;
  workers.reserve(threads);
  for (int t = 0; t < threads; ++t)
    workers.emplace_back([&bad, &counted, &lines] {
      for (int i = 0; i < each; ++i)
        if (const auto n = bad.admit(start + i / 1000 * second)) {
          counted += n;
          ++lines;
        }
    });
  for (auto& w : workers) w.join();
  counted += bad.admit(start + 1000 * second);  // what is held, and this one
  CHECK(counted == threads * each + 1);
  CHECK(lines >= 1);
  CHECK(lines <= 2);  // 20 s of virtual time, an interval of 10 s
}

}  // namespace infernex::log
