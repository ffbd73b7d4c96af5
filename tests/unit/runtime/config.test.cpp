#include "actors/runtime/config.hpp"

#include <unistd.h>

#include <algorithm>
#include <cstdio>
#include <fstream>
#include <string>

#include <boost/json.hpp>
#include <doctest/doctest.h>

#include "actors/runtime/file_stamp.hpp"

namespace infernex::config {

namespace {

using std::chrono::milliseconds;

/// The problems of a text, one a line.
template <class Reader>
std::string problems_of(std::string_view text, Reader reader) {
  auto parsed = document::parse(text, "node.yaml");
  {
    auto root = parsed.root();
    reader(root);
  }
  std::string lines;
  for (const auto& p : parsed.problems()) lines += render(p) + '\n';
  return lines;
}

std::string problems_of(std::string_view text) {
  return problems_of(text, [](section&) {});
}

/// A file that is gone with its owner.
class temporary_file {
 public:
  explicit temporary_file(const std::string& text) {
    char pattern[] = "/tmp/infernex-config-XXXXXX";
    const int fd = ::mkstemp(pattern);
    REQUIRE(fd >= 0);
    ::close(fd);
    path_ = pattern;
    std::ofstream(path_) << text;
  }
  ~temporary_file() { std::remove(path_.c_str()); }
  const std::string& path() const { return path_; }

 private:
  std::string path_;
};

enum class router_mode { bus, embedded };

}  // namespace

TEST_CASE("every type is read, absent keys keep their defaults") {
  std::string name = "default";
  std::string untouched = "default";
  bool enabled = false;
  double weight = 0;
  std::uint64_t capacity = 0;
  std::uint32_t threads = 0;
  std::uint16_t port = 0;
  milliseconds timeout{0};
  std::uint64_t body = 0;
  std::vector<std::string> tags;
  auto mode = router_mode::bus;
  std::optional<std::uint64_t> limit;
  std::optional<std::uint64_t> no_limit;
  std::string url;
  const auto problems =
      problems_of(R"(
name: "a: b"
enabled: true
weight: 0.75
capacity: 18446744073709551615
threads: 4
gateway:
  port: 8000
  timeout: 250ms
  body: 20MiB
tags: [x, 7]
mode: embedded
limit: 3
engines:
  - url: http://127.0.0.1:1
  - url: http://127.0.0.1:2
)",
                  [&](section& root) {
                    root.read("name", name).read("untouched", untouched).read("enabled", enabled);
                    root.read("weight", weight, 0, 1).read("capacity", capacity, 0, UINT64_MAX);
                    root.read("threads", threads, 1, 64).read("tags", tags);
                    root.read_choice("mode", mode, {{"bus", router_mode::bus}, {"embedded", router_mode::embedded}});
                    root.read("limit", limit, 1, 5).read("no_limit", no_limit, 1, 5);
                    auto gateway = root.below("gateway");
                    gateway.read("port", port, 1, 65535);
                    gateway.read("timeout", timeout, milliseconds(1), milliseconds(10'000));
                    gateway.read_bytes("body", body, 1, UINT64_MAX);
                    for (auto& engine : root.list("engines")) engine.require("url").read("url", url);
                  });
  CHECK(problems == "");
  CHECK(name == "a: b");
  CHECK(untouched == "default");
  CHECK(enabled);
  CHECK(weight == 0.75);
  CHECK(capacity == UINT64_MAX);
  CHECK(threads == 4);
  CHECK(port == 8000);
  CHECK(timeout == milliseconds(250));
  CHECK(body == 20U * 1024 * 1024);
  CHECK(tags == std::vector<std::string>{"x", "7"});
  CHECK(mode == router_mode::embedded);
  CHECK(limit == std::optional<std::uint64_t>(3));
  CHECK(no_limit == std::nullopt);
  CHECK(url == "http://127.0.0.1:2");
}

TEST_CASE("all mistakes of a file are collected, with file, line, column and path") {
  std::uint16_t port = 1;
  bool enabled = true;
  milliseconds timeout{7};
  std::uint64_t body = 9;
  double weight = 0.5;
  auto mode = router_mode::bus;
  std::optional<std::uint32_t> limit;
  const auto problems =
      problems_of(R"(gateway:
  port: web
  enabled: "true"
  timeout: 5 parsecs
  body: 20MiB
  prot: 1
weight: 2
mode: emb
limit: 6
engines:
  - name: e0
  - e1
)",
                  [&](section& root) {
                    auto gateway = root.below("gateway");
                    gateway.read("port", port, 1, 65535).read("enabled", enabled);
                    gateway.read("timeout", timeout, milliseconds(100), milliseconds(300'000));
                    gateway.read_bytes("body", body, 1, 1 << 20);
                    root.read("weight", weight, 0, 1).read("limit", limit, 1, 5);
                    root.read_choice("mode", mode, {{"bus", router_mode::bus}, {"embedded", router_mode::embedded}});
                    std::string name;
                    for (auto& e : root.list("engines")) e.require("url").read("name", name);
                  });
  CHECK(problems ==
        "node.yaml:2:9: gateway.port: a whole number between 1 and 65535, not \"web\"\n"
        "node.yaml:3:12: gateway.enabled: true or false, not the text \"true\"\n"
        "node.yaml:4:12: gateway.timeout: a duration between 100ms and 5m, such as 250ms, 2s or 5m, not \"5 parsecs\"\n"
        "node.yaml:5:9: gateway.body: a size between 1 bytes and 1MiB, such as 64KiB or 20MiB, not \"20MiB\"\n"
        "node.yaml:6:3: gateway.prot: unknown key; did you mean 'port'?\n"
        "node.yaml:7:9: weight: a number between 0 and 1, not \"2\"\n"
        "node.yaml:8:7: mode: one of bus, embedded, not \"emb\"\n"
        "node.yaml:9:8: limit: a whole number between 1 and 5, not \"6\"\n"
        "node.yaml:11:5: engines[0].url: missing\n"
        "node.yaml:12:5: engines[1]: a mapping of keys, not \"e1\"\n");
  // Refused values leave their targets alone.
  CHECK(port == 1);
  CHECK(enabled);
  CHECK(timeout == milliseconds(7));
  CHECK(body == 9);
  CHECK(weight == 0.5);
  CHECK(mode == router_mode::bus);
  CHECK(limit == std::nullopt);
}

TEST_CASE("wrong kinds of values are named") {
  std::string name = "x";
  std::vector<std::string> tags{"kept"};
  std::uint32_t threads = 3;
  const auto problems =
      problems_of("name: [1]\ntags: one\nthreads: {a: 1}\ngateway: 3\nengines: 4\nempty:\n", [&](section& root) {
        root.read("name", name).read("tags", tags).read("threads", threads, 1, 2);
        CHECK_FALSE(root.below("gateway").has("port"));
        CHECK(root.list("engines").empty());
        root.read("empty", name);
      });
  CHECK(problems ==
        "node.yaml:1:7: name: a text, not a list\n"
        "node.yaml:2:7: tags: a list of texts, not \"one\"\n"
        "node.yaml:3:10: threads: a whole number between 1 and 2, not a mapping\n"
        "node.yaml:4:10: gateway: a mapping of keys, not \"3\"\n"
        "node.yaml:5:10: engines: a list of mappings, not \"4\"\n"
        "node.yaml:6:1: empty: a text, not nothing\n");
  CHECK(name == "x");
  CHECK(tags == std::vector<std::string>{"kept"});
}

TEST_CASE("numbers out of their type are refused, not wrapped") {
  std::uint16_t port = 1;
  std::uint64_t big = 1;
  for (const char* text : {"65536", "-1", "+1", "1.5", "0x10", "1e3", "18446744073709551616", "8000 ", "''", "~"}) {
    CAPTURE(text);
    auto parsed = document::parse("p: " + std::string(text) + "\n", "n");
    const bool trimmed_by_yaml = std::string(text) == "8000 ";
    parsed.root().read("p", port, 1, 65535);
    CHECK(parsed.problems().size() == (trimmed_by_yaml ? 0 : 1));
  }
  CHECK(port == 8000);
  CHECK(problems_of("b: 18446744073709551616", [&](section& root) { root.read("b", big, 0, UINT64_MAX); }) ==
        "node.yaml:1:4: b: a whole number of at least 0, not \"18446744073709551616\"\n");
  double weight = 0.5;
  CHECK(problems_of("w: nan", [&](section& root) { root.read("w", weight, 0, 1); }) ==
        "node.yaml:1:4: w: a number between 0 and 1, not \"nan\"\n");
}

TEST_CASE("durations and sizes") {
  const auto duration_of = [](const std::string& text) -> std::optional<milliseconds> {
    milliseconds value{-1};
    auto parsed = document::parse("d: " + text, "n");
    parsed.root().read("d", value, milliseconds(0), milliseconds(1'000'000'000));
    return parsed.problems().empty() ? std::optional(value) : std::nullopt;
  };
  CHECK(duration_of("250ms") == milliseconds(250));
  CHECK(duration_of("2s") == milliseconds(2000));
  CHECK(duration_of("5m") == milliseconds(300'000));
  CHECK(duration_of("1h") == milliseconds(3'600'000));
  CHECK(duration_of("0.5") == milliseconds(500));
  CHECK(duration_of("1.5s") == milliseconds(1500));
  CHECK(duration_of("0") == milliseconds(0));
  CHECK(duration_of("'250ms'") == milliseconds(250));
  for (const char* bad : {"0.5ms", "-1s", "s", "1 s", "1d", "1e3s", "1.2.3s", "99999999999999999999h", "inf"}) {
    CAPTURE(bad);
    CHECK(duration_of(bad) == std::nullopt);
  }

  const auto size_of = [](const std::string& text) -> std::optional<std::uint64_t> {
    std::uint64_t value = 0;
    auto parsed = document::parse("b: " + text, "n");
    parsed.root().read_bytes("b", value, 0, UINT64_MAX);
    return parsed.problems().empty() ? std::optional(value) : std::nullopt;
  };
  CHECK(size_of("17") == 17);
  CHECK(size_of("64KiB") == 65536);
  CHECK(size_of("1GB") == 1'000'000'000);
  CHECK(size_of("2TiB") == std::uint64_t{2} << 40U);
  CHECK(size_of("3B") == 3);
  for (const char* bad : {"1.5MiB", "MiB", "-1B", "1mib", "17179869184GiB", "1 MiB"}) {
    CAPTURE(bad);
    CHECK(size_of(bad) == std::nullopt);
  }
}

TEST_CASE("a key given twice is a mistake, and the first one counts") {
  std::uint16_t port = 0;
  const auto problems = problems_of("port: 1\nport: 2\n", [&](section& root) { root.read("port", port, 1, 65535); });
  CHECK(problems == "node.yaml:2:1: the key \"port\" is given twice; first on line 1\n");
  CHECK(port == 1);
}

TEST_CASE("a syntax error is a problem, what stands before it is read, nothing after it is called missing") {
  std::uint16_t port = 0;
  const auto problems = problems_of("port: 70000\nname: [a, b\nurl: x\n", [&](section& root) {
    root.read("port", port, 1, 65535).require("url");
    root.has("name");
    root.has("url");
  });
  CHECK(problems.find("node.yaml:1:7: port: a whole number between 1 and 65535, not \"70000\"\n") == 0);
  CHECK(problems.find("missing") == std::string::npos);
  CHECK(problems.find("node.yaml:3:") != std::string::npos);
}

TEST_CASE("aliases, second documents, odd keys and deep nesting are refused") {
  CHECK(problems_of("a: &x [1]\nb: *x\n", [](section& root) {
          std::vector<std::string> texts;
          root.read("a", texts).read("b", texts);
        }) == "node.yaml:2:4: aliases are not supported; write the value out\n");
  CHECK(problems_of("---\n{}\n---\n{}\n").find("a second document begins") != std::string::npos);
  CHECK(problems_of("[a]: 1\n").find("a key is a word") != std::string::npos);
  CHECK(problems_of("- a\n") == "node.yaml:1:1: a configuration is a mapping of keys\n");
  CHECK(problems_of("a: " + std::string(40, '[') + std::string(40, ']')).find("nested deeper than 32 levels") !=
        std::string::npos);
  CHECK(problems_of(std::string(100'000, '[')) != "");
  CHECK(problems_of("") == "");
}

TEST_CASE("keys nobody asked for are reported where they stand, in every section") {
  CHECK(problems_of("gateway:\n  xyzzy: 1\nengines:\n  - ulr: a\n",
                    [](section& root) {
                      CHECK_FALSE(root.below("gateway").has("port"));
                      for (auto& engine : root.list("engines")) CHECK_FALSE(engine.has("url"));
                    }) ==
        "node.yaml:2:3: gateway.xyzzy: unknown key\n"
        "node.yaml:4:5: engines[0].ulr: unknown key; did you mean 'url'?\n");
}

TEST_CASE("mistakes of meaning are reported at the value") {
  CHECK(problems_of("a:\n  b: 1\n",
                    [](section& root) {
                      auto a = root.below("a");
                      CHECK(a.has("b"));
                      a.complain("b", "contradicts c");
                      a.complain("c", "is needed with b");
                    }) ==
        "node.yaml:2:3: a.c: is needed with b\n"
        "node.yaml:2:6: a.b: contradicts c\n");
}

TEST_CASE("a syntax error that quotes the file stays one line") {
  using namespace std::string_literals;
  const auto problems = problems_of("&ame: :a1\0 a\0\n\0\0way:\n  port: 80"s);
  CAPTURE(problems);
  CHECK(std::count(problems.begin(), problems.end(), '\n') == 1);
}

TEST_CASE("the number of problems shown is bounded, and control characters are not passed on") {
  std::string text = "\"a\\e[2J\": 1\n";
  for (int i = 0; i < 500; ++i) text += "key" + std::to_string(i) + ": 1\n";
  auto parsed = document::parse(text, "node.yaml");
  CHECK_FALSE(parsed.root().has("port"));
  const auto problems = parsed.problems();
  REQUIRE(problems.size() == 101);
  CHECK(render(problems.front()) == "node.yaml:1:1: a?[2J: unknown key");
  CHECK(problems.back().message == "401 more mistakes are not shown");
}

TEST_CASE("files: read, absent, a folder, too large") {
  const temporary_file good("port: 80\n");
  auto loaded = document::load(good.path());
  REQUIRE(loaded);
  std::uint16_t port = 0;
  loaded->root().read("port", port, 1, 65535);
  CHECK(port == 80);
  CHECK(loaded->problems().empty());

  const auto absent = document::load("/nonexistent/node.yaml");
  REQUIRE_FALSE(absent);
  CHECK(absent.failure().code == errc::not_found);
  CHECK(document::load("/tmp").failure().code == errc::not_found);

  const temporary_file large(std::string((1 << 20) + 1, ' '));
  const auto refused = document::load(large.path());
  REQUIRE_FALSE(refused);
  CHECK(refused.failure().code == errc::too_large);
}

TEST_CASE("a free-form mapping keeps what words of YAML mean; quotes make texts") {
  auto parsed = document::parse(
      "any:\n"
      "  whole: -3\n"
      "  large: 18446744073709551615\n"
      "  real: 1e6\n"
      "  yes: true\n"
      "  none: ~\n"
      "  word: nan\n"
      "  quoted: \"8000\"\n"
      "  list: [1, {a: .5}]\n",
      "node.yaml");
  boost::json::object any;
  parsed.root().read("any", any);
  CHECK(parsed.problems().empty());
  CHECK(boost::json::serialize(any) ==
        R"({"whole":-3,"large":18446744073709551615,"real":1E6,"yes":true,"none":null,"word":"nan","quoted":"8000",)"
        R"("list":[1,{"a":5E-1}]})");
  CHECK(problems_of("any: [1]\n", [](section& root) {
          boost::json::object none;
          root.read("any", none);
        }) == "node.yaml:1:6: any: a mapping of keys, not a list\n");
}

TEST_CASE("mistakes below a free-form value are told where they stand, also by keys that hold dots") {
  const auto lines = problems_of(
      "plugins:\n"
      "- type: a\n"
      "- type: b\n"
      "  parameters:\n"
      "    matchLabels: {llm-d.ai/role: 7}\n"
      "    list:\n"
      "    - x: 1\n",
      [](section& root) {
        root.list("plugins");
        for (const auto* path : {"plugins[1].parameters.matchLabels.llm-d.ai/role", "plugins[1].parameters.list",
                                 "plugins[1].parameters.list[0].x", "plugins[1].parameters.absent", "plugins[9].type",
                                 "elsewhere", "plugins[x"})
          root.complain_below(path, "wrong");
      });
  for (const auto* line :
       {"5:34: plugins[1].parameters.matchLabels.llm-d.ai/role: wrong\n", "6:5: plugins[1].parameters.list: wrong\n",
        "7:10: plugins[1].parameters.list[0].x: wrong\n", "4:3: plugins[1].parameters.absent: wrong\n",
        "1:1: plugins[9].type: wrong\n", "1:1: elsewhere: wrong\n", "1:1: plugins[x: wrong\n"}) {
    CAPTURE(line);
    CHECK(lines.find(std::string("node.yaml:") + line) != std::string::npos);
  }
}

TEST_CASE("mistakes of a file that this one names follow its own") {
  auto parsed = document::parse("port: web\nfile: other.yaml\n", "etc/node.yaml");
  {
    auto root = parsed.root();
    std::string file;
    std::uint16_t port = 0;
    root.read("file", file);
    root.adopt({{"etc/other.yaml", 1, 1, "", "wrong"}});
    root.read("port", port, 1, 2);
    CHECK(root.beside(file) == "etc/other.yaml");
    CHECK(root.beside("/abs.yaml") == "/abs.yaml");
  }
  const auto problems = parsed.problems();
  REQUIRE(problems.size() == 2);
  CHECK(problems[0].file == "etc/node.yaml");
  CHECK(render(problems[1]) == "etc/other.yaml:1:1: wrong");
}

TEST_CASE("a stamp tells a file from what it was, and that there is none") {
  CHECK_FALSE(stamp_of("/nonexistent"));
  const temporary_file file("a: 1\n");
  const auto first = stamp_of(file.path());
  REQUIRE(first);
  CHECK(stamp_of(file.path()) == first);
  std::ofstream(file.path()) << "a: 10\n";
  CHECK(stamp_of(file.path()) != first);
}

TEST_CASE("the nearest word, if near enough") {
  CHECK(nearest("prot", {"host", "port"}) == "port");
  CHECK(nearest("timeuot", {"timeout", "time"}) == "timeout");
  CHECK(nearest("xyzzy", {"port", "host"}) == std::nullopt);
  CHECK(nearest("a", {"b"}) == "b");
  CHECK(nearest(std::string(100'000, 'x'), {std::string(100'000, 'x')}) == std::nullopt);
}

}  // namespace infernex::config
