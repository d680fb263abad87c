#include "recipes/resnet50/recipe.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/recipes/recipe_run.h"
#include "tests/recipes/resnet50/painted_images.h"
#include "trireme/error.h"

namespace trireme::recipes::resnet50 {
namespace {

using testing::AllOf;
using testing::HasSubstr;

class ResNetRecipe : public RecipeRun {
 protected:
  ResNetRecipe() : RecipeRun("resnet50", make_recipe) {
    write_images(folder / "train", 16);
    write_images(folder / "val", 4);
    usual_ = {{"--resnet50-images", path("train")},
              {"--resnet50-depth", "18"},
              {"--resnet50-width", "8"},
              {"--resnet50-size", "8"},
              {"--resnet50-stem", "small"},
              {"--resnet50-least-area", "0.5"}};
  }

  /// Steps of 16 images, as microbatches of 8.
  static Words training(Words first, const Words& more) {
    const Words usual = {"--batch",         "16",   "--microbatch", "8",
                         "--lanes",         "2",    "--optimizer",  "sgd",
                         "--learning-rate", "0.05", "--group",      "*bn*,weight-decay=0"};
    first.insert(first.end(), usual.begin(), usual.end());
    first.insert(first.end(), more.begin(), more.end());
    return first;
  }

  static Words serial(const Words& more) {
    return training({"train", "--serial", "--stages", "2"}, more);
  }

  void expect_resumed_as_straight(const Words& options) const {
    const auto losses_of = [&](Words words) {
      words.insert(words.end(), options.begin(), options.end());
      EXPECT_EQ(run(words), 0);
      return losses([](const Json& step) { return step["loss"].get<double>(); });
    };
    const auto in_folder = [&](const Words& more) {
      return losses_of(
          training({"train", "--run", path("run"), "--metrics", path("metrics")}, more));
    };
    const auto straight = losses_of(serial({"--steps", "6", "--metrics", path("metrics")}));
    ASSERT_EQ(straight.size(), 6U) << "two passes over the images";
    const std::int64_t kept = options.empty() ? 4 : 3;
    EXPECT_EQ(in_folder({"--steps", std::to_string(kept)}),
              std::vector(straight.begin(), straight.begin() + kept));
    const auto resumed = in_folder({"--steps", "6", "--resume", "--reader-threads", "3"});
    ASSERT_GE(resumed.size(), 2U);
    EXPECT_EQ(std::vector(resumed.end() - 2, resumed.end()),
              std::vector(straight.end() - 2, straight.end()));
  }
};

TEST_F(ResNetRecipe, LearnsAFewColours) {
  ASSERT_EQ(run(serial({"--steps", "24", "--resnet50-evaluation-images", path("val"), "--metrics",
                        path("metrics")})),
            0);
  std::istringstream lines(read_file(path("metrics")));
  Json last;
  for (std::string line; std::getline(lines, line);) last = Json::parse(line);
  ASSERT_TRUE(last.contains("evaluation"));
  EXPECT_GE(last["evaluation"]["by_name"]["top1"].get<double>(), 0.9) << last.dump();
}

/// In bf16, evaluated by the moving averages of the weights: the training is the same without them.
TEST_F(ResNetRecipe, LearnsInBf16AndIsEvaluatedByAverages) {
  const auto train = [&](const std::string& precision, const Words& more) {
    Words words =
        serial({"--steps", "24", "--precision", precision, "--average-decay", "0.8",
                "--resnet50-evaluation-images", path("val"), "--metrics", path("metrics")});
    words.insert(words.end(), more.begin(), more.end());
    EXPECT_EQ(run(words), 0);
    return losses([](const Json& step) { return step["loss"].get<double>(); });
  };
  const auto of_weights = train("bf16", {});
  const Json by_weights = evaluations().back();
  EXPECT_EQ(train("bf16", {"--evaluate-average"}), of_weights);
  const Json by_averages = evaluations().back();
  EXPECT_NE(by_averages["loss"], by_weights["loss"]);
  for (const Json& last : {by_weights, by_averages}) {
    EXPECT_GE(last["by_name"]["top1"].get<double>(), 0.9) << last.dump();
  }
  EXPECT_NE(train("f32", {}), of_weights);
}

/// Crops, flips and the order are functions of the step: a run that goes on has them too, read by more threads.
TEST_F(ResNetRecipe, ARunThatResumesHasTheWeightsOfOneThatDidNotStop) {
  expect_resumed_as_straight({});
}

/// The first block, of 32 images, is met in steps 0 to 3; it is left in the middle of its second pass.
TEST_F(ResNetRecipe, ARunThatResumesRepeatsImagesAsOneThatDidNotStop) {
  expect_resumed_as_straight({"--resnet50-repeat", "2", "--resnet50-repeat-block", "32"});
}

TEST_F(ResNetRecipe, SaysWhatReadingTakes) {
  testing::internal::CaptureStdout();
  const int code = run({"profile-data", "--samples", "24", "--batch", "8", "--threads", "1,2",
                        "--step-ms", "1000", "--json"});
  const std::string printed = testing::internal::GetCapturedStdout();
  ASSERT_EQ(code, 0) << printed;
  const Json json = Json::parse(printed);
  ASSERT_EQ(json["runs"].size(), 2U);
  EXPECT_EQ(json["runs"][1]["threads"], 2);
  EXPECT_EQ(json["reader_threads"], 1) << "8 small images take less than a second";
  for (const char* part : {"read", "decode", "resize"}) {
    EXPECT_GT(json["runs"][0]["parts"][part]["ms_per_sample"].get<double>(), 0) << part;
  }
  EXPECT_GT(json["runs"][0]["parts"]["read"]["bytes"], 24 * 100);
}

/// Two passes over the images, and what was read ahead: up to 16 microbatches of 8, and one that is being read.
TEST_F(ResNetRecipe, MetricsSayWhatReadingTook) {
  ASSERT_EQ(run(training({"train", "--run", path("run"), "--reader-threads", "1"},
                         {"--steps", "6", "--stages", "1"})),
            0);
  double bytes = 0, read_ms = 0, decode_ms = 0;
  std::istringstream lines(read_file(path("run/metrics.jsonl")));
  for (std::string line; std::getline(lines, line);) {
    const Json step = Json::parse(line);
    EXPECT_GE(step["batches_ready"].get<double>(), 0);
    EXPECT_LE(step["batches_ready"].get<double>(), 16);
    EXPECT_EQ(step["reader_threads"], 1);
    // None of a step whose images had all been read before.
    read_ms += step.value("read_ms", 0.0);
    decode_ms += step.value("decode_ms", 0.0);
    bytes += step.value("read_mb_per_s", 0.0) * 1e3 * step["step_ms"].get<double>();
  }
  EXPECT_GT(decode_ms, 0);
  EXPECT_LT(decode_ms, 1.1 * read_ms) << "by one thread, but for a microbatch that is under way";
  double all = 0;
  for (const auto& file : std::filesystem::recursive_directory_iterator(folder / "train")) {
    if (file.is_regular_file()) all += static_cast<double>(file.file_size());
  }
  EXPECT_GT(bytes, 1.99 * all);
  EXPECT_LT(bytes, (2 + 17.0 * 8 / 48) * 1.1 * all);
}

/// 96 places of blocks of 24 images are 24 images, four times each.
TEST_F(ResNetRecipe, ImagesThatAreRepeatedAreReadOnce) {
  const auto bytes_read = [&](const Words& more) {
    Words words = {"profile-data", "--samples", "96", "--batch", "8", "--threads", "1", "--json"};
    words.insert(words.end(), more.begin(), more.end());
    testing::internal::CaptureStdout();
    const int code = run(words);
    const std::string printed = testing::internal::GetCapturedStdout();
    EXPECT_EQ(code, 0) << printed;
    return Json::parse(printed)["runs"][0]["parts"]["read"]["bytes"].get<std::int64_t>();
  };
  const Words repeat = {"--resnet50-repeat", "4", "--resnet50-repeat-block", "24"};
  const std::int64_t once = bytes_read(repeat);
  EXPECT_GT(once, 24 * 100);
  const auto with = [&](const Words& more) {
    Words words = repeat;
    words.insert(words.end(), more.begin(), more.end());
    return bytes_read(words);
  };
  EXPECT_EQ(with({"--resnet50-keep-decoded", "0"}), 4 * once) << "kept is what is asked for";
  EXPECT_EQ(with({"--resnet50-keep-decoded", "1MiB", "--resnet50-keep-folder", path("")}), once);
  EXPECT_GT(bytes_read({}), 3 * once) << "96 of 48 images";
}

/// An image file that ends early, in its tables: nothing of it can be decoded.
TEST_F(ResNetRecipe, DamagedImagesArePassedOverWithinTheBudget) {
  const std::filesystem::path image = folder / "train/class1/104.jpg";
  std::filesystem::resize_file(image, std::filesystem::file_size(image) / 2);
  const auto losses_of = [&](Words words, const Words& more) {
    words.insert(words.end(), {"--metrics", path("metrics"), "--resnet50-skip-damaged", "1"});
    EXPECT_EQ(run(training(words, more)), 0);
    return losses([](const Json& step) { return step["loss"].get<double>(); });
  };
  testing::internal::CaptureStderr();
  EXPECT_EQ(run(serial({"--steps", "6"})), 1) << "without a budget";
  EXPECT_THAT(testing::internal::GetCapturedStderr(), HasSubstr("/train/class1/104.jpg'"));
  const auto expected = losses_of({"train", "--serial", "--stages", "2"},
                                  {"--steps", "6", "--resnet50-quarantine", path("all.jsonl")});
  ASSERT_EQ(expected.size(), 6U) << "two passes over the images";
  EXPECT_EQ(losses_of({"train", "--run", path("run"), "--reader-threads", "3"},
                      {"--steps", "6", "--stages", "1"}),
            expected);
  const std::string line = read_file(path("run/damaged.jsonl"));
  EXPECT_EQ(line, read_file(path("all.jsonl"))) << "one line, however often it was met";
  const Json entry = Json::parse(line);
  EXPECT_EQ(entry["sample"], 17) << "16 of class0 come before it";
  EXPECT_THAT(entry["error"].get<std::string>(), HasSubstr("/train/class1/104.jpg'"));
}

TEST_F(ResNetRecipe, AnEvaluationIsNotRepeated) {
  const Workload made =
      workload({"--resnet50-evaluation-images", path("val"), "--resnet50-repeat", "3"});
  EXPECT_EQ(made.training->repeats(), (data::SampleRepeats{.times = 3}));
  EXPECT_EQ(made.evaluation->repeats().times, 1);
  EXPECT_EQ(made.evaluation->num_samples(), 12);
}

TEST_F(ResNetRecipe, TheSamplesDoNotDependOnTheModel) {
  const std::string identity = workload({}).training->identity();
  EXPECT_EQ(identity, workload({"--resnet50-width", "12"}).training->identity());
  EXPECT_EQ(identity, workload({"--resnet50-plain-norms"}).training->identity());
  EXPECT_EQ(identity, workload({"--resnet50-channels-last"}).training->identity());
  EXPECT_NE(identity, workload({"--resnet50-size", "20"}).training->identity());
  EXPECT_NE(identity, workload({"--resnet50-no-flips"}).training->identity());
  EXPECT_NE(identity, workload({"--resnet50-least-area", "0.6"}).training->identity());
  EXPECT_NE(identity, workload({"--resnet50-most-aspect", "1"}).training->identity());
  EXPECT_NE(identity, workload({"--resnet50-repeat", "2"}).training->identity());
  EXPECT_EQ(identity, workload({"--resnet50-repeat", "1"}).training->identity());
}

TEST_F(ResNetRecipe, ExamplesShowImagesAndWhatTheModelTakesThemFor) {
  EXPECT_THAT(workload({"--resnet50-evaluation-images", path("val")}).examples(),
              AllOf(HasSubstr("/val/class0/100.jpg' is 'class0'; the model: '"),
                    HasSubstr("of 12 images 33.3 % are 'class0'")));
}

/// The folder's order is that of the file, and a class without an image has its output.
TEST_F(ResNetRecipe, ClassesMayBeNamed) {
  write("classes", "class2\nclass7\nclass0\nclass1\n");
  EXPECT_EQ(shape({"--resnet50-classes", path("classes")}, "fc.weight"),
            (std::vector<std::int64_t>{4, 64}));
  EXPECT_THAT(
      workload({"--resnet50-classes", path("classes"), "--resnet50-evaluation-images", path("val")})
          .examples(),
      HasSubstr("/val/class2/102.jpg' is 'class2'"));
  EXPECT_EQ(shape({}, "fc.weight"), (std::vector<std::int64_t>{3, 64}));
}

TEST_F(ResNetRecipe, MisuseIsNamed) {
  EXPECT_EQ(run({"train", "--resnet50-depth", "20"}), 2);
  EXPECT_EQ(run({"train", "--resnet50-images", path("nothing")}), 1);
  EXPECT_EQ(run({"train", "--resnet50-size", "0"}), 2);
  EXPECT_EQ(run({"train", "--resnet50-width", "4"}), 2);
  EXPECT_EQ(run({"train", "--resnet50-smoothing", "1"}), 2);
  EXPECT_EQ(run({"train", "--resnet50-repeat", "0"}), 2);
  EXPECT_EQ(run({"train", "--resnet50-repeat-block", "64"}), 2) << "without repeats";
  EXPECT_EQ(run({"train", "--resnet50-skip-damaged", "-1"}), 2);
  EXPECT_EQ(run({"train", "--resnet50-quarantine", path("x")}), 2) << "without a budget";
  write_images(folder / "more", 1);
  std::filesystem::rename(folder / "more/class0", folder / "more/class9");
  EXPECT_EQ(run({"train", "--resnet50-evaluation-images", path("more")}), 2);
}

}  // namespace
}  // namespace trireme::recipes::resnet50
