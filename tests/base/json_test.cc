#include "trireme/base/json.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <bit>
#include <cmath>
#include <limits>
#include <random>

#include "trireme/error.h"

namespace trireme {
namespace {

using testing::HasSubstr;

Error parse_error(std::string_view text) {
  try {
    parse_json(text, "file.json");
  } catch (const Error& error) {
    return error;
  }
  return Error(ErrorKind::kCancelled, "was accepted: " + std::string(text.substr(0, 80)));
}

TEST(CompactText, SortsKeysAndKeepsUtf8) {
  const Json json = {{"b", 1}, {"a", {1, 2, {{"x", nullptr}}}}, {"ä", "ö\n\"\x01"}};
  EXPECT_EQ(compact_text(json), R"({"a":[1,2,{"x":null}],"b":1,"ä":"ö\n\"\u0001"})");
}

// The right column is what Python prints for repr(x).
TEST(CompactText, WritesRealsAsPythonDoes) {
  const std::pair<double, const char*> cases[] = {
      {0.0, "0.0"},
      {-0.0, "-0.0"},
      {1.0, "1.0"},
      {0.5, "0.5"},
      {-12.25, "-12.25"},
      {0.1, "0.1"},
      {1e-4, "0.0001"},
      {1e-5, "1e-05"},
      {1.5e-7, "1.5e-07"},
      {123456789012345.0, "123456789012345.0"},
      {1e15, "1000000000000000.0"},
      {1e16, "1e+16"},
      {1.7976931348623157e308, "1.7976931348623157e+308"},
      {5e-324, "5e-324"},
      {1.0 / 3, "0.3333333333333333"},
      {100.0, "100.0"},
  };
  for (const auto& [number, text] : cases) EXPECT_EQ(compact_text(number), text);
}

TEST(CompactText, RealsReadBackExactly) {
  for (const unsigned seed : {1U, 2U}) {
    std::mt19937_64 random(seed);
    for (int i = 0; i < 50'000; ++i) {
      const auto number = std::bit_cast<double>(random());
      if (!std::isfinite(number)) continue;
      const Json back = parse_json(compact_text(number), "number");
      ASSERT_TRUE(back.is_number_float()) << compact_text(number);
      ASSERT_EQ(std::bit_cast<std::uint64_t>(back.get<double>()),
                std::bit_cast<std::uint64_t>(number))
          << "seed " << seed << ", " << compact_text(number);
    }
  }
}

/// What parsing `text` fails with.
std::string problem_of(const std::string& text) {
  try {
    parse_json(text, "x");
  } catch (const Error& error) {
    EXPECT_EQ(error.kind(), ErrorKind::kCorruptData);
    return error.message();
  }
  ADD_FAILURE() << "was parsed";
  return "";
}

// The parser's code and 100 kB of digits were shown; what followed a NUL was left out.
TEST(ParseJson, SaysInFewWordsWhatIsWrong) {
  EXPECT_EQ(problem_of("[1e999]"), "'x' is not valid JSON: at byte 6, a number is beyond 64 bits");
  EXPECT_LT(problem_of("[" + std::string(100'000, '9') + "e9]").size(), 100U);
  EXPECT_LT(problem_of("[\"" + std::string(100'000, 'a')).size(), 300U);
  EXPECT_EQ(problem_of(std::string("{}\0", 3)), "'x' is not valid JSON: at byte 2 stands a NUL");
}

TEST(CompactText, RefusesWhatJsonLacks) {
  for (const Json& json :
       {Json(std::nan("")), Json(std::numeric_limits<double>::infinity()), Json("\xff")}) {
    try {
      compact_text(json);
      FAIL() << "was written";
    } catch (const Error& error) {
      EXPECT_EQ(error.kind(), ErrorKind::kInvalidArgument);
    }
  }
}

TEST(ReadableText, KeepsShortThingsOnOneLine) {
  Json json = {{"name", "x"}, {"empty", Json::array()}, {"none", Json::object()}};
  json["items"] = {{{"id", 0}, {"shape", {4, 8}}}, {{"id", 1}, {"shape", {8}}}};
  json["text"] = std::string(70, 't');
  EXPECT_EQ(readable_text(json), R"({
  "empty": [],
  "items": [{"id": 0, "shape": [4, 8]}, {"id": 1, "shape": [8]}],
  "name": "x",
  "none": {},
  "text": ")" + std::string(70, 't') +
                                     "\"\n}\n");
}

TEST(ReadableText, FillsLinesWithNumbers) {
  Json numbers = Json::array();
  for (int i = 100; i < 150; ++i) numbers.push_back(i);
  const std::string text = readable_text({{"numbers", numbers}});
  EXPECT_EQ(text, R"({
  "numbers": [
    100, 101, 102, 103, 104, 105, 106, 107, 108, 109, 110, 111, 112, 113, 114, 115, 116, 117, 118,
    119, 120, 121, 122, 123, 124, 125, 126, 127, 128, 129, 130, 131, 132, 133, 134, 135, 136, 137,
    138, 139, 140, 141, 142, 143, 144, 145, 146, 147, 148, 149
  ]
}
)");
  EXPECT_EQ(parse_json(text, "x")["numbers"], numbers);
}

TEST(ReadableText, NoLineIsLongerThanAHundredColumns) {
  Json nodes = Json::array();
  for (int length = 60; length < 110; ++length) {
    nodes.push_back({{"n", std::string(length - 50, 'n')}, {"values", {1, 2, 3, 0.5, "abc"}}});
  }
  const std::string text = readable_text({{"nodes", nodes}});
  std::size_t begin = 0;
  for (std::size_t end; (end = text.find('\n', begin)) != std::string::npos; begin = end + 1) {
    EXPECT_LE(end - begin, 100U) << text.substr(begin, end - begin);
  }
  EXPECT_EQ(parse_json(text, "x")["nodes"], nodes);
}

TEST(ParseJson, NamesFileAndPlaceOfAnError) {
  const Error error = parse_error("{\"a\": 1,\n \"b\": }");
  EXPECT_EQ(error.kind(), ErrorKind::kCorruptData);
  EXPECT_THAT(error.message(), HasSubstr("'file.json' is not valid JSON"));
  EXPECT_THAT(error.message(), HasSubstr("at byte 16"));
}

TEST(ParseJson, RefusesWhatIsNotOneStrictValue) {
  const std::string binary(
      "\x7f"
      "ELF\0\1",
      6);
  for (const std::string& text :
       {std::string(), std::string("{"), std::string("[1,]"), std::string("1 2"),
        std::string("{\"a\":1} x"), std::string("nan"), std::string("'a'"), std::string("\"\xff\""),
        std::string("1e999"), std::string("123456789012345678901234567890"), binary,
        std::string("[1, 2"), std::string("\xef\xbb\xbf")}) {
    EXPECT_EQ(parse_error(text).kind(), ErrorKind::kCorruptData) << text;
  }
}

TEST(ParseJson, RefusesARepeatedField) {
  const Error error = parse_error(R"({"a": {"x": 1, "y": 2, "x": 3}})");
  EXPECT_EQ(error.kind(), ErrorKind::kCorruptData);
  EXPECT_THAT(error.message(), HasSubstr("\"x\" appears twice"));
}

TEST(ParseJson, DepthBombIsAnErrorNotACrash) {
  const std::string ok = std::string(kMaxJsonDepth, '[') + std::string(kMaxJsonDepth, ']');
  EXPECT_NO_THROW(parse_json(ok, "x"));
  EXPECT_THAT(parse_error("[" + ok + "]").message(), HasSubstr("nested deeper"));
  EXPECT_THAT(parse_error(std::string(1'000'000, '[')).message(), HasSubstr("nested deeper"));
  std::string objects;
  for (int i = 0; i < 1'000'000; ++i) objects += "{\"a\":";
  EXPECT_THAT(parse_error(objects).message(), HasSubstr("nested deeper"));
}

}  // namespace
}  // namespace trireme
