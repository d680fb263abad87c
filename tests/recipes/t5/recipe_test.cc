#include "recipes/t5/recipe.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <filesystem>
#include <fstream>
#include <sstream>

#include "packs/text/data/token_index.h"
#include "recipes/t5/show_tokens.h"
#include "trireme/base/files.h"
#include "trireme/base/json.h"
#include "trireme/engine/train/construct_workload.h"
#include "trireme/error.h"

namespace trireme::recipes::t5 {
namespace {

namespace fs = std::filesystem;
using testing::HasSubstr;

/// A folder of its own, gone at the end.
class RecipeTest : public testing::Test {
 protected:
  RecipeTest() {
    folder_ = fs::temp_directory_path() / ("trireme_t5_" + std::to_string(getpid()));
    fs::create_directories(folder_);
  }
  ~RecipeTest() override { fs::remove_all(folder_); }

  /// The tiny model over a few sources of this repository, with more options or other values.
  std::vector<std::string> words(const std::vector<std::string>& more) const {
    const std::vector<std::pair<std::string, std::string>> usual = {
        {"--t5-size", "tiny"},         {"--t5-text", "trireme/base"}, {"--t5-suffix", ".h,.cc"},
        {"--t5-cache", path("cache")}, {"--t5-vocabulary", "600"},    {"--t5-inputs", "32"},
        {"--t5-held-out", "0.2"}};
    std::vector<std::string> all = {"trireme", "--model", "t5"};
    for (const auto& [name, value] : usual) {
      if (std::find(more.begin(), more.end(), name) != more.end()) continue;
      all.insert(all.end(), {name, value});
    }
    all.insert(all.end(), more.begin(), more.end());
    return all;
  }

  static std::vector<const char*> pointers(const std::vector<std::string>& all) {
    std::vector<const char*> result;
    for (const std::string& word : all) result.push_back(word.c_str());
    return result;
  }

  int run(const std::vector<std::string>& more) const {
    const auto all = words(more);
    const auto argv = pointers(all);
    return run_command_line(static_cast<int>(argv.size()), argv.data(),
                            std::map<std::string, Recipe>{{"t5", make_recipe()}});
  }

  /// The workload that the options make, under seed 1.
  Workload workload(const std::vector<std::string>& more) const {
    const auto all = words(more);
    const auto argv = pointers(all);
    const Recipe recipe = make_recipe();
    CLI::App app;
    app.add_option("--model");
    recipe.add_options(app);
    app.parse(static_cast<int>(argv.size()), argv.data());
    return train::construct(recipe.make, 1);
  }

  std::string path(const std::string& name) const { return (folder_ / name).string(); }

  fs::path folder_;
};

TEST_F(RecipeTest, LearnsTheTextOfAFewFiles) {
  ASSERT_EQ(
      run({"train", "--serial", "--batch", "8", "--microbatch", "4", "--lanes", "2", "--stages",
           "2", "--steps", "60", "--learning-rate", "0.01", "--metrics", path("metrics")}),
      0);
  std::istringstream lines(read_file(path("metrics")));
  std::vector<double> losses;
  for (std::string line; std::getline(lines, line);) {
    const Json json = Json::parse(line);
    if (!json.contains("evaluation")) losses.push_back(json["loss"].get<double>());
  }
  ASSERT_EQ(losses.size(), 60U);
  EXPECT_GT(losses.front(), 5);
  EXPECT_LT(losses.back(), 0.75 * losses.front());
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
  const auto shape = [&](const std::vector<std::string>& more, const std::string& name) {
    for (const NamedTensor& parameter : workload(more).model.parameters) {
      if (parameter.name == name) return parameter.tensor.sizes().vec();
    }
    return std::vector<std::int64_t>{};
  };
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
    std::ofstream(folder_ / (std::to_string(i) + ".txt"))
        << "line " << i << " of " << i * i << " is about " << i * 7919 % 1000 << "\n";
  }
  const auto complaint = [&](const std::string& inputs) {
    try {
      workload({"--t5-text", folder_.string(), "--t5-suffix", ".txt", "--t5-inputs", inputs});
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
