#include "recipes/t5/recipe.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <fstream>

#include "packs/text/data/token_index.h"
#include "recipes/t5/show_tokens.h"
#include "tests/recipes/recipe_run.h"
#include "trireme/base/json.h"
#include "trireme/error.h"

namespace trireme::recipes::t5 {
namespace {

using testing::HasSubstr;

class RecipeTest : public RecipeRun {
 protected:
  RecipeTest() : RecipeRun("t5", make_recipe) {
    usual_ = {{"--t5-size", "tiny"},      {"--t5-text", "trireme/base"},
              {"--t5-suffix", ".h,.cc"},  {"--t5-cache", path("cache")},
              {"--t5-vocabulary", "600"}, {"--t5-inputs", "32"},
              {"--t5-held-out", "0.2"}};
  }
};

TEST_F(RecipeTest, LearnsTheTextOfAFewFiles) {
  ASSERT_EQ(
      run({"train", "--serial", "--batch", "8", "--microbatch", "4", "--lanes", "2", "--stages",
           "2", "--steps", "60", "--learning-rate", "0.01", "--metrics", path("metrics")}),
      0);
  const std::vector<double> found =
      losses([](const Json& step) { return step["loss"].get<double>(); });
  ASSERT_EQ(found.size(), 60U);
  EXPECT_GT(found.front(), 5);
  EXPECT_LT(found.back(), 0.75 * found.front());
}

TEST_F(RecipeTest, FineTunesTheWeightsOfAPreTrainingOnPairsWithLabels) {
  expect_to_learn_pairs("100", {"--t5-inputs", "48"});
}

TEST_F(RecipeTest, ExamplesShowGapsAndWhatIsPutThere) {
  const Workload made = workload({});
  const std::string text = made.examples();
  EXPECT_THAT(text, HasSubstr("sample 0\n  | "));
  EXPECT_THAT(text, HasSubstr("\n  <extra_id_0>  model "));
  EXPECT_THAT(text, HasSubstr("  text '"));
}

TEST_F(RecipeTest, ShowCountsTheTokensOfAFolder) {
  text::save({.tokenizer_sha256 = std::string(64, '1'),
              .vocabulary_size = 32100,
              .report = {.files = 3, .bytes = 5300, .documents = 2},
              .training = {2, {{"training-00000.safetensors", 3688, 900, std::string(64, '2')}}},
              .held_out = {}},
             path("tokens.json"));
  const ShownDocument shown = show_tokens(path("tokens.json"));
  EXPECT_EQ(shown.text, R"(tokens below 32100
read: 3 files, 5300 bytes, 2 documents
            documents  shards  tokens
  training          2       1     900
  held out          0       0       0
)");
  testing::internal::CaptureStdout();
  ASSERT_EQ(run({"show", path("tokens.json"), "--json"}), 0);
  EXPECT_EQ(Json::parse(testing::internal::GetCapturedStdout()), Json::parse(shown.json));
}

TEST_F(RecipeTest, TheSpansDoNotDependOnTheModel) {
  EXPECT_EQ(workload({}).training->identity(), workload({}).training->identity());
  EXPECT_EQ(workload({}).training->identity(),
            workload({"--t5-d-model", "16"}).training->identity());
}

TEST_F(RecipeTest, NumbersOfTheModelCanBeSet) {
  const std::vector<std::string> numbers = {"--t5-d-model", "24", "--t5-d-ff", "40",
                                            "--t5-heads",   "3",  "--t5-d-kv", "5"};
  EXPECT_THAT(shape(numbers, "encoder.layers.1.attention.query_key_value.weight"),
              testing::ElementsAre(45, 24));
  EXPECT_THAT(shape(numbers, "decoder.layers.1.feed_forward.input.weight"),
              testing::ElementsAre(40, 24));
  EXPECT_THAT(shape({"--t5-layers", "1"}, "encoder.layers.1.norm.weight"), testing::IsEmpty());
  EXPECT_THAT(shape({"--t5-variant", "1.1"}, "head.weight"), testing::ElementsAre(768, 32));
}

TEST_F(RecipeTest, MisuseIsNamed) {
  EXPECT_EQ(run({"train", "--t5-size", "huge"}), 2);
  EXPECT_EQ(run({"train", "--t5-d-model", "0"}), 2);
  EXPECT_EQ(run({"train", "--t5-text", path("nothing")}), 2);
  EXPECT_EQ(run({"train", "--t5-variant", "1"}), 2) << "not the number of an enumerator";
}

TEST_F(RecipeTest, TheSplitWithTooLittleTextIsNamed) {
  for (int i = 0; i < 60; ++i) {
    std::ofstream(folder / (std::to_string(i) + ".txt"))
        << "line " << i << " of " << i * i << " is about " << i * 7919 % 1000 << "\n";
  }
  const auto complaint = [&](const std::string& inputs) {
    try {
      workload({"--t5-text", folder.string(), "--t5-suffix", ".txt", "--t5-inputs", inputs});
    } catch (const Error& error) {
      EXPECT_EQ(error.kind(), ErrorKind::kInvalidArgument);
      return error.message();
    }
    return std::string();
  };
  EXPECT_EQ(complaint("32"), "");
  EXPECT_THAT(complaint("500"),
              testing::AllOf(HasSubstr("the held-out text has"), HasSubstr("a sample takes 554"),
                             HasSubstr("--t5-held-out")));
  EXPECT_THAT(complaint("1000000000000"),
              testing::AllOf(HasSubstr("the training text has"), HasSubstr("--t5-text")));
  EXPECT_THAT(complaint("1"), HasSubstr("hold no text"));
}

}  // namespace
}  // namespace trireme::recipes::t5
