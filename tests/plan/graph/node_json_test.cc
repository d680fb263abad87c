#include "trireme/plan/graph/node_json.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <bit>
#include <cmath>
#include <limits>
#include <random>

#include "trireme/error.h"

namespace trireme::graph {
namespace {

constexpr double kInf = std::numeric_limits<double>::infinity();

Argument read_argument(const std::string& text) {
  const Json json = parse_json(text, "argument");
  return argument_from_json(JsonField(json, "argument"));
}

// The table of node_json.h and docs/formats.md.
TEST(ArgumentJson, WritesEveryKind) {
  const std::pair<Argument, const char*> cases[] = {
      {{}, "null"},
      {{ValueRef{12}}, R"({"value":12})"},
      {{true}, "true"},
      {{Size{0, 5}}, "5"},
      {{Size{0, std::numeric_limits<std::int64_t>::min()}}, "-9223372036854775808"},
      {{Size{1, -2}}, R"({"fixed":-2,"per_sample":1})"},
      {{Real{0, 5}}, "5.0"},
      {{Real{0, 0.5}}, "0.5"},
      {{Real{0, -0.0}}, "-0.0"},
      {{Real{0, kInf}}, R"({"real":"inf"})"},
      {{Real{0, -kInf}}, R"({"real":"-inf"})"},
      {{Real{0.5, 0}}, R"({"real":{"fixed":0.0,"per_sample":0.5}})"},
      {{std::complex<double>(0, -kInf)}, R"({"complex":[0.0,"-inf"]})"},
      {{std::string("sum")}, R"("sum")"},
      {{Dtype::kBf16}, R"({"dtype":"bf16"})"},
      {{DeviceName{"cuda:1"}}, R"({"device":"cuda:1"})"},
      {{LayoutName{"strided"}}, R"({"layout":"strided"})"},
      {{MemoryFormatName{"preserve"}}, R"({"memory_format":"preserve"})"},
      {{WrappedNumber{Size{0, 4}, Dtype::kI64}}, R"({"dtype":"i64","wrapped":4})"},
      {{WrappedNumber{Real{0, 4}, Dtype::kF64}}, R"({"dtype":"f64","wrapped":4.0})"},
      {{WrappedNumber{true, Dtype::kBool}}, R"({"dtype":"bool","wrapped":true})"},
      {{WrappedNumber{Size{1, 0}, Dtype::kI64}},
       R"({"dtype":"i64","wrapped":{"fixed":0,"per_sample":1}})"},
      {{WrappedNumber{std::complex<double>(1, 2), Dtype::kC128}},
       R"({"dtype":"c128","wrapped":{"complex":[1.0,2.0]}})"},
      {{ArgumentList{}}, "[]"},
      {{ArgumentList{{Size{0, 1}}, {}, {ArgumentList{{ValueRef{3}}}}}},
       R"([1,null,[{"value":3}]])"},
  };
  for (const auto& [argument, text] : cases) {
    EXPECT_EQ(compact_text(to_json(argument)), text);
    EXPECT_EQ(read_argument(text), argument) << text;
    EXPECT_EQ(compact_text(to_json(read_argument(text))), text);
  }
}

TEST(ArgumentJson, NanSurvives) {
  const Argument nan{Real{0, std::nan("")}};
  EXPECT_EQ(compact_text(to_json(nan)), R"({"real":"nan"})");
  EXPECT_EQ(compact_text(to_json(read_argument(R"({"real":"nan"})"))), R"({"real":"nan"})");
}

TEST(ArgumentJson, RealsKeepEveryBit) {
  for (const unsigned seed : {1U, 2U}) {
    std::mt19937_64 random(seed);
    for (int i = 0; i < 10'000; ++i) {
      const auto number = std::bit_cast<double>(random());
      if (std::isnan(number)) continue;
      const Argument back = read_argument(compact_text(to_json(Argument{Real{0, number}})));
      ASSERT_EQ(std::bit_cast<std::uint64_t>(std::get<Real>(back.content).fixed),
                std::bit_cast<std::uint64_t>(number))
          << "seed " << seed << ", " << number;
    }
  }
}

TEST(ArgumentJson, RefusesOtherObjects) {
  for (const char* text :
       {"{}", R"({"valeu":1})", R"({"value":-1})", R"({"value":1,"dtype":"f32"})",
        R"({"value":1.0})", R"({"per_sample":1})", R"({"per_sample":0.5,"fixed":1})",
        R"({"real":"infinity"})", R"({"complex":[1.0]})", R"({"dtype":"float"})",
        R"({"wrapped":"x","dtype":"f32"})", R"({"wrapped":1})", R"({"wrapped":[1],"dtype":"f32"})",
        "9223372036854775808"}) {
    try {
      read_argument(text);
      ADD_FAILURE() << text;
    } catch (const Error& error) {
      EXPECT_EQ(error.kind(), ErrorKind::kCorruptData) << text;
      EXPECT_THAT(error.message(), ::testing::HasSubstr("argument")) << text;
    }
  }
}

}  // namespace
}  // namespace trireme::graph
