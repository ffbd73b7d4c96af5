#include "actors/proxy/json_scan.hpp"

#include <random>
#include <vector>

#include <doctest/doctest.h>

using namespace infernex::proxy;

TEST_CASE("members are found whatever white space, nesting and brackets in texts are around them") {
  const std::string_view json = " { \"a\" : [1,{\"b\":\"}]\"}] ,\"c\":\"x\\\"y\\\\\", \"d\":-1.50e+07}\n";
  CHECK(find_value(json, "a") == "[1,{\"b\":\"}]\"}]");
  CHECK(find_value(json, "c") == "\"x\\\"y\\\\\"");
  CHECK(find_value(json, "d") == "-1.50e+07");
  CHECK(find_value(json, "b").empty());
}

TEST_CASE("names are compared unescaped, and of several the last counts") {
  CHECK(find_value(R"({"max\u005ftokens":1})", "max_tokens") == "1");
  CHECK(find_value(R"({"n":1,"n":2})", "n") == "2");
}

TEST_CASE("an edit keeps every other byte of a value, drops repeats, and cannot be passed by with escapes") {
  const json_edit edits[] = {{"n", "7"}, {"gone", {}}, {"fresh", "[1]"}};
  CHECK(edited(R"({"x":123456789012345678901234567890, "n":1,"gone":2,"\u006e":3,"g\u006fne":4,"y":1.10})", edits) ==
        R"({"x":123456789012345678901234567890,"n":7,"y":1.10,"fresh":[1]})");
  CHECK(edited("{}", edits) == R"({"n":7,"fresh":[1]})");
}

TEST_CASE("what is no object gives nothing") {
  const json_edit edit{"a", "1"};
  for (const auto* bad :
       {"", "[]", "{", "{\"a\"", "{\"a\":", "{\"a\":1", "{\"a\":1,}", "{a:1}", "{\"a\":1}x", "{\"a\" 1}"})
    CHECK_MESSAGE(!edited(bad, {&edit, 1}), bad);
}

TEST_CASE("texts are read and written") {
  CHECK(text_of(R"("a\n\u00e9\ud83d\ude00\"\/")") == "a\n\u00e9\U0001F600\"/");
  CHECK(text_of(R"("\ud83d")") == "\uFFFD");
  CHECK(!text_of(R"("\x")"));
  CHECK(!text_of("12"));
  CHECK(quoted("a\"\\\n\x01") == R"("a\"\\\u000a\u0001")");
  CHECK(text_of(quoted("tab\t\"q\" \\ \u00e9")) == "tab\t\"q\" \\ \u00e9");
}

TEST_CASE("arrays are spliced") {
  CHECK(with_first("[1, {\"a\":2}]", "9") == "[9,{\"a\":2}]");
  CHECK(with_last("[1,2]", "9") == "[1,9]");
  CHECK(with_appended("[]", "9") == "[9]");
  CHECK(!with_first("[]", "9"));
  CHECK(!with_appended("{}", "9"));
  CHECK(first_element(" [ [1,2] ,3]") == "[1,2]");
}

TEST_CASE("no prefix of a document, and no damaged one, is read out of bounds") {
  const std::string whole = R"({"a":[1,{"b":"c\"d\u0041"}],"e":null,"f":"g"})";
  std::mt19937 random(1);
  const json_edit edit{"e", "0"};
  std::size_t read = 0;
  for (std::size_t n = 0; n <= whole.size(); ++n) {
    for (int round = 0; round < 50; ++round) {
      // Exactly as large as it is: a read behind it is a sanitizer's finding.
      std::vector<char> exact(whole.begin(), whole.begin() + static_cast<std::ptrdiff_t>(n));
      if (round > 0 && n > 0) exact[random() % n] = "{}[]\",:\\ 0u"[random() % 11];
      const std::string_view json(exact.data(), exact.size());
      read += edited(json, {&edit, 1}).value_or("").size() + find_value(json, "f").size() + first_element(json).size() +
              text_of(json).value_or("").size();
    }
  }
  CHECK(read > whole.size());
}
