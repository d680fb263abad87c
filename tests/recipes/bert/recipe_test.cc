#include "recipes/bert/recipe.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <fstream>
#include <numeric>
#include <sstream>

#include "tests/recipes/recipe_run.h"
#include "trireme/base/files.h"
#include "trireme/base/json.h"
#include "trireme/error.h"

namespace trireme::recipes::bert {
namespace {

using testing::HasSubstr;

class RecipeTest : public RecipeRun {
 protected:
  RecipeTest() : RecipeRun("bert", make_recipe) {
    usual_ = {{"--bert-size", "tiny"},     {"--bert-channels", "32"},
              {"--bert-inner", "64"},      {"--bert-text", "trireme/base"},
              {"--bert-suffix", ".h,.cc"}, {"--bert-cache", path("cache")},
              {"--bert-pieces", "500"},    {"--bert-length", "48"},
              {"--bert-predictions", "8"}, {"--bert-held-out", "0.2"}};
  }
};

TEST_F(RecipeTest, LearnsTheTextOfAFewFiles) {
  ASSERT_EQ(run({"train", "--serial", "--batch", "16", "--microbatch", "8", "--lanes", "2",
                 "--stages", "2", "--steps", "200", "--learning-rate", "0.003", "--bert-unpadded",
                 "--metrics", path("metrics")}),
            0);
  const std::vector<double> masked =
      losses([](const Json& step) { return step["by_name"]["masked"].get<double>(); });
  ASSERT_EQ(masked.size(), 200U);
  EXPECT_GT(masked.front(), 5.5);
  const double last = std::accumulate(masked.end() - 20, masked.end(), 0.0) / 20;
  EXPECT_LT(last, masked.front() - 0.8);
}

TEST_F(RecipeTest, ExamplesShowWhatIsHiddenAndWhatTheModelPutsThere) {
  const std::string text = workload({}).examples();
  EXPECT_THAT(text, HasSubstr("sample 0: the second part "));
  EXPECT_THAT(text, HasSubstr("  | [CLS] "));
  EXPECT_THAT(text, HasSubstr(" of 48 tokens on average; of "));
  EXPECT_THAT(text, HasSubstr(" % are '"));
}

TEST_F(RecipeTest, TheSamplesDoNotDependOnTheModel) {
  const std::string identity = workload({}).training->identity();
  EXPECT_EQ(identity, workload({"--bert-unpadded"}).training->identity());
  EXPECT_EQ(identity, workload({"--bert-channels", "64"}).training->identity());
  EXPECT_NE(identity, workload({"--bert-length", "40"}).training->identity());
  EXPECT_NE(identity, workload({"--bert-passages", "documents"}).training->identity());
}

TEST_F(RecipeTest, NumbersOfTheModelCanBeSet) {
  const std::vector<std::string> numbers = {"--bert-channels", "24", "--bert-inner", "40",
                                            "--bert-heads",    "3"};
  EXPECT_THAT(shape(numbers, "blocks.1.query_key_value.weight"), testing::ElementsAre(72, 24));
  EXPECT_THAT(shape(numbers, "blocks.1.inner.weight"), testing::ElementsAre(40, 24));
  EXPECT_THAT(shape({"--bert-blocks", "1"}, "blocks.1.inner.weight"), testing::IsEmpty());
  EXPECT_THAT(shape({}, "masked_bias"), testing::ElementsAre(500));
}

TEST_F(RecipeTest, FineTunesTheWeightsOfAPreTrainingOnPairsWithLabels) {
  expect_to_learn_pairs("150", {"--init-partial"});
}

TEST_F(RecipeTest, MisuseIsNamed) {
  EXPECT_EQ(run({"train", "--bert-classify-held-out", path("pairs.tsv")}), 2);
  EXPECT_EQ(run({"train", "--bert-classify", path("pairs.tsv"), "--bert-classify-columns", "a,b"}),
            2);
  EXPECT_EQ(run({"train", "--bert-size", "huge"}), 2);
  EXPECT_EQ(run({"train", "--bert-heads", "5"}), 2);
  EXPECT_EQ(run({"train", "--bert-text", path("nothing")}), 2);
  EXPECT_EQ(run({"train", "--bert-vocabulary", path("nothing")}), 1);
  EXPECT_EQ(run({"train", "--bert-passages", "words"}), 2);
}

TEST_F(RecipeTest, WhatDoesNotFitIsNamed) {
  const auto complaint = [&](const std::vector<std::string>& more) {
    try {
      workload(more);
    } catch (const Error& error) {
      EXPECT_EQ(error.kind(), ErrorKind::kInvalidArgument);
      return error.message();
    }
    return std::string();
  };
  EXPECT_THAT(complaint({"--bert-length", "513"}),
              testing::AllOf(HasSubstr("the 512 positions"), HasSubstr("--bert-length")));
  // The text of a document decides whether it is held out: "a word" is, so that one is left to train on.
  const std::filesystem::path texts = folder / "texts";
  std::filesystem::create_directory(texts);
  std::ofstream(texts / "0.txt") << "a few words\n";
  std::ofstream(texts / "1.txt") << "a word\n";
  EXPECT_THAT(complaint({"--bert-text", texts.string(), "--bert-suffix", ".txt", "--bert-pieces",
                         "200", "--bert-held-out", "0.1"}),
              testing::AllOf(HasSubstr("text: pairs of sentences"), HasSubstr("two passages")));
  std::ofstream(folder / "words.vocabulary") << "the\na\n";
  EXPECT_THAT(complaint({"--bert-vocabulary", path("words.vocabulary")}),
              testing::AllOf(HasSubstr("words.vocabulary"), HasSubstr("no [PAD]")));
}

}  // namespace
}  // namespace trireme::recipes::bert
