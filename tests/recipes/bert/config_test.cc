#include "recipes/bert/config.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <functional>
#include <string>

#include "tests/base/error_of.h"

namespace trireme::recipes::bert {
namespace {

// As the published weights have them: with the pooler and both heads.
TEST(Config, ParametersOfThePublishedSizes) {
  const auto count = [](const std::string& size) { return num_parameters(make_config(size)); };
  EXPECT_EQ(count("tiny"), 4'433'468);
  EXPECT_EQ(count("mini"), 11'267'900);
  EXPECT_EQ(count("small"), 29'058'876);
  EXPECT_EQ(count("base"), 110'106'428);
  EXPECT_EQ(count("large"), 336'226'108);
}

TEST(Config, EverySizeMakesAModel) {
  for (const std::string& name : size_names()) EXPECT_NO_THROW(check(make_config(name))) << name;
}

TEST(Config, AnUnknownSizeListsThoseThatThereAre) {
  EXPECT_THAT(test::error_of([] { make_config("huge"); }).message(),
              testing::HasSubstr("'huge' of BERT; there are: tiny, mini, small, base, large"));
}

TEST(Config, NumbersThatMakeNoModelAreRefused) {
  const auto refused = [](const std::function<void(BertConfig&)>& change, const std::string& what) {
    BertConfig config;
    change(config);
    const Error error = test::error_of([&] { check(config); });
    EXPECT_EQ(error.kind(), ErrorKind::kInvalidArgument);
    EXPECT_THAT(error.message(), testing::HasSubstr(what));
  };
  refused([](BertConfig& c) { c.vocabulary = 0; }, "vocabulary");
  refused([](BertConfig& c) { c.positions = 0; }, "positions");
  refused([](BertConfig& c) { c.types = -1; }, "types");
  refused([](BertConfig& c) { c.channels = 0; }, "channels");
  refused([](BertConfig& c) { c.inner = 0; }, "inner");
  refused([](BertConfig& c) { c.heads = 5; }, "768 channels and 5 heads");
  refused([](BertConfig& c) { c.blocks = 5000; }, "from 1 to 4096");
  refused([](BertConfig& c) { c.dropout = 1; }, "dropout");
}

}  // namespace
}  // namespace trireme::recipes::bert
