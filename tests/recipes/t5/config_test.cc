#include "recipes/t5/config.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <functional>
#include <string>

#include "tests/base/error_of.h"

namespace trireme::recipes::t5 {
namespace {

std::int64_t count(const std::string& size, Variant variant) {
  return num_parameters(make_config(size, variant));
}

// As the published weights have them.
TEST(Config, ParametersOfThePublishedSizes) {
  EXPECT_EQ(count("small", Variant::kV10), 60'506'624);
  EXPECT_EQ(count("base", Variant::kV10), 222'903'552);
  EXPECT_EQ(count("large", Variant::kV10), 737'668'096);
  EXPECT_EQ(count("3b", Variant::kV10), 2'851'598'336);
  EXPECT_EQ(count("11b", Variant::kV10), 11'307'321'344);
  EXPECT_EQ(count("small", Variant::kV11), 76'961'152);
  EXPECT_EQ(count("base", Variant::kV11), 247'577'856);
  EXPECT_EQ(count("large", Variant::kV11), 783'150'080);
  EXPECT_EQ(count("xl", Variant::kV11), 2'849'757'184);
  EXPECT_EQ(count("xxl", Variant::kV11), 11'135'332'352);
}

TEST(Config, EverySizeIsOfAVariantAndMakesAModel) {
  for (const std::string& name : size_names()) {
    int variants = 0;
    for (const Variant variant : {Variant::kV10, Variant::kV11}) {
      try {
        check(make_config(name, variant));
        ++variants;
      } catch (const Error& error) {
        EXPECT_THAT(error.message(), testing::HasSubstr("no size '" + name + "'"));
      }
    }
    EXPECT_GE(variants, 1) << name;
  }
}

TEST(Config, AnUnknownSizeListsThoseThatThereAre) {
  EXPECT_THAT(
      test::error_of([] { make_config("3b", Variant::kV11); }).message(),
      testing::HasSubstr(
          "'3b' in this variant of T5; there are: tiny, demo, small, base, large, xl, xxl"));
}

TEST(Config, NumbersThatMakeNoModelAreRefused) {
  const auto refused = [](const std::function<void(Config&)>& change, const std::string& what) {
    Config config;
    change(config);
    const Error error = test::error_of([&] { check(config); });
    EXPECT_EQ(error.kind(), ErrorKind::kInvalidArgument);
    EXPECT_THAT(error.message(), testing::HasSubstr(what));
  };
  refused([](Config& c) { c.vocabulary = 0; }, "vocabulary");
  refused([](Config& c) { c.d_model = 0; }, "d_model");
  refused([](Config& c) { c.d_ff = -1; }, "d_ff");
  refused([](Config& c) { c.d_kv = 0; }, "d_kv");
  refused([](Config& c) { c.heads = 0; }, "heads");
  refused([](Config& c) { c.encoder_layers = 0; }, "encoder");
  refused([](Config& c) { c.decoder_layers = 0; }, "decoder");
  refused([](Config& c) { c.decoder_layers = 1'000'000'000; }, "from 1 to 4096");
  refused([](Config& c) { c.buckets = 5; }, "buckets");
  refused([](Config& c) { c.max_distance = 16; }, "max_distance");
  refused([](Config& c) { c.dropout = 1; }, "dropout");
}

}  // namespace
}  // namespace trireme::recipes::t5
