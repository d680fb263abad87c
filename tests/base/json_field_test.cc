#include "trireme/base/json_field.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <array>
#include <cmath>

#include "trireme/error.h"

namespace trireme {
namespace {

template <typename Read>
std::string message(const Json& json, Read read) {
  try {
    read(JsonField(json, "root"));
  } catch (const Error& error) {
    EXPECT_EQ(error.kind(), ErrorKind::kCorruptData);
    return error.message();
  }
  return "accepted";
}

TEST(JsonField, ReadsEachKind) {
  const Json json = {
      {"flag", true}, {"count", 7}, {"text", "t"}, {"list", {1, 2}}, {"dtype", "bf16"}};
  JsonObject object(JsonField(json, "root"));
  EXPECT_TRUE(object.required("flag").boolean());
  EXPECT_EQ(object.required("count").integer(0, 7), 7);
  EXPECT_EQ(object.required("text").text(), "t");
  const auto read = [](const JsonField& item) { return item.index(1, 2); };
  EXPECT_EQ(object.required("list").list(read), (std::vector<int>{1, 2}));
  EXPECT_EQ(dtype_from_json(object.required("dtype")), Dtype::kBf16);
  EXPECT_FALSE(object.optional("other"));
  EXPECT_NO_THROW(object.finish());
}

TEST(JsonField, RealsIncludeTheSpecialOnes) {
  for (const double number : {0.5, -0.0, 3.0, 1e300, std::numeric_limits<double>::infinity(),
                              -std::numeric_limits<double>::infinity()}) {
    const Json json = real_to_json(number);
    EXPECT_EQ(JsonField(json, "x").real(), number);
    EXPECT_EQ(std::signbit(JsonField(json, "x").real()), std::signbit(number));
  }
  const Json nan = real_to_json(std::nan(""));
  EXPECT_TRUE(std::isnan(JsonField(nan, "x").real()));
  const Json whole = 3;
  EXPECT_EQ(JsonField(whole, "x").real(), 3.0);
}

TEST(JsonField, AnErrorNamesPlaceExpectedAndActual) {
  const auto integer = [](const JsonField& field) { field.integer(0, 9); };
  EXPECT_EQ(message(10, integer), "root: expected a whole number from 0 to 9, got 10");
  EXPECT_EQ(message(5.0, integer), "root: expected a whole number from 0 to 9, got 5.0");
  EXPECT_EQ(message("5", integer), "root: expected a whole number from 0 to 9, got \"5\"");
  EXPECT_EQ(message(18446744073709551615U, integer),
            "root: expected a whole number from 0 to 9, got 18446744073709551615");
  EXPECT_EQ(message(nullptr, [](const JsonField& f) { f.boolean(); }),
            "root: expected true or false, got null");
  EXPECT_EQ(message(1, [](const JsonField& f) { f.text(); }), "root: expected a text, got 1");
  EXPECT_EQ(message(1, [](const JsonField& f) { f.items(); }), "root: expected a list, got 1");
  EXPECT_EQ(message(std::string(100, 'x'), [](const JsonField& f) { f.real(); }),
            "root: expected a number, \"inf\", \"-inf\" or \"nan\", got \"" + std::string(59, 'x') +
                "...");
  constexpr std::array<std::string_view, 2> kNames = {"a", "b"};
  EXPECT_EQ(message("c", [&](const JsonField& f) { f.choice(kNames); }),
            "root: expected one of a, b, got \"c\"");
  EXPECT_EQ(message({1, 2, "x"},
                    [](const JsonField& f) {
                      f.list([](const JsonField& item) { return item.integer(); });
                    }),
            "root[2]: expected a whole number, got \"x\"");
}

TEST(JsonObject, RefusesMissingAndUnknownFields) {
  EXPECT_EQ(message({{"a", 1}}, [](const JsonField& f) { JsonObject(f).required("b"); }),
            "root: the field \"b\" is missing");
  EXPECT_EQ(message({{"a", {{"x", 1}}}},
                    [](const JsonField& f) {
                      JsonObject object(f);
                      JsonObject inner(object.required("a"));
                      inner.optional("y");
                      inner.finish();
                    }),
            "root.a: unknown field \"x\"; this version knows none of that name");
  EXPECT_EQ(message(1, [](const JsonField& f) { JsonObject object(f); }),
            "root: expected an object, got 1");
}

}  // namespace
}  // namespace trireme
