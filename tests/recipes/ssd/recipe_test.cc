#include "recipes/ssd/recipe.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstdlib>
#include <filesystem>
#include <map>
#include <thread>

#include "packs/vision/coco/summary.h"
#include "tests/recipes/recipe_run.h"
#include "tests/recipes/ssd/painted_shapes.h"
#include "trireme/error.h"
#include "trireme/session/followed_run.h"
#include "trireme/session/run_document.h"

namespace trireme::recipes::ssd {
namespace {

using namespace std::chrono_literals;
using testing::AllOf;
using testing::HasSubstr;

class SsdRecipe : public RecipeRun {
 protected:
  SsdRecipe() : RecipeRun("ssd", make_recipe) {
    write_shapes(folder / "train", 64);
    write_shapes(folder / "val", 16, 64, 2);
    usual_ = {{"--ssd-images", path("train")},
              {"--ssd-annotations", path("train/instances.json")},
              {"--ssd-depth", "18"},
              {"--ssd-width", "8"},
              {"--ssd-size", "64"}};
  }

  Words with_evaluation(const Words& more) const {
    Words words = {"--ssd-evaluation-images", path("val"), "--ssd-evaluation-annotations",
                   path("val/instances.json")};
    words.insert(words.begin(), more.begin(), more.end());
    return words;
  }

  /// Steps of 16 images, as microbatches of 8.
  static Words training(Words first, const Words& more) {
    const Words usual = {"--batch",         "16",    "--microbatch", "8",
                         "--lanes",         "2",     "--optimizer",  "adamw",
                         "--learning-rate", "0.003", "--group",      "*bn*,weight-decay=0"};
    first.insert(first.end(), usual.begin(), usual.end());
    first.insert(first.end(), more.begin(), more.end());
    return first;
  }

  static Words serial(const Words& more) {
    return training({"train", "--serial", "--stages", "2"}, more);
  }

  /// The evaluation that `follow` makes of the last checkpoint, by name, while the run's document says that it trains. What is
  /// evaluated is known from the run alone.
  std::map<std::string, double> followed(const Words& more) const {
    const std::filesystem::path document = folder / "run/run.json",
                                made = folder / "run/evaluations.jsonl";
    const session::RunDocument ended = session::load_run(document);
    session::RunDocument trains = ended;
    trains.segments.back().measured.reset();
    session::save(trains, document);
    std::jthread ending([&](const std::stop_token& stop) {
      const auto is_made = [&] {
        return std::filesystem::exists(made) && read_file(made).find("losses") != std::string::npos;
      };
      while (!stop.stop_requested() && !is_made()) std::this_thread::sleep_for(10ms);
      session::save(ended, document);
    });
    Words words = {"follow", "--run", path("run")};
    words.insert(words.end(), more.begin(), more.end());
    EXPECT_EQ(run(words), 0);
    std::map<std::string, double> found;
    const auto evaluations = session::evaluations_of(read_file(made));
    EXPECT_EQ(evaluations.size(), 1U);
    for (const LossTotal& one : evaluations.at(0).losses.losses) found[one.name] = one.mean();
    return found;
  }

  std::vector<double> losses_of(const Words& words) const {
    EXPECT_EQ(run(words), 0);
    return losses([](const Json& step) { return step["loss"].get<double>(); });
  }
};

TEST_F(SsdRecipe, FindsPaintedShapes) {
  testing::internal::CaptureStdout();
  const auto losses = losses_of(
      with_evaluation(training({"train", "--run", path("run"), "--metrics", path("metrics")},
                               {"--steps", "60", "--stages", "1", "--ssd-results", path("results"),
                                "--best-by", "AP50", "--best-is-most", "--keep-best", "1"})));
  const std::string printed = testing::internal::GetCapturedStdout();
  ASSERT_EQ(losses.size(), 60U);
  EXPECT_LT(losses.back(), losses.front() / 2);
  const vision::CocoReport report = vision::evaluate_coco_files(
      path("val/instances.json"), path("results"), {.kind = vision::CocoKind::kBox});
  EXPECT_THAT(printed, AllOf(HasSubstr("AP50 "), HasSubstr("100.jpg has ")));
  const Json last = evaluations().back();
  for (const auto& [name, value] : report.json["stats"].items()) {
    EXPECT_EQ(last["by_name"][name], value) << name;
  }
  EXPECT_GE(report.json["stats"]["AP50"].get<double>(), 0.5) << printed;
}

/// Crops, flips, colours and the order are functions of the step: a run that goes on has them too, read by more threads.
TEST_F(SsdRecipe, ARunThatResumesHasTheLossesOfOneThatDidNotStop) {
  const auto in_folder = [&](const Words& more) {
    return losses_of(training({"train", "--run", path("run"), "--ssd-colors", "--ssd-size", "32",
                               "--metrics", path("metrics")},
                              more));
  };
  const auto straight = losses_of(
      serial({"--steps", "6", "--ssd-colors", "--ssd-size", "32", "--metrics", path("metrics")}));
  ASSERT_EQ(straight.size(), 6U) << "a pass over the images, and half of another";
  EXPECT_EQ(in_folder({"--steps", "4"}), std::vector(straight.begin(), straight.begin() + 4));
  const auto resumed = in_folder({"--steps", "6", "--resume", "--reader-threads", "3"});
  ASSERT_GE(resumed.size(), 2U);
  EXPECT_EQ(std::vector(resumed.end() - 2, resumed.end()),
            std::vector(straight.end() - 2, straight.end()));
}

/// Each of the twelve figures of what was found is the run's own, and pycocotools', to the bit.
TEST_F(SsdRecipe, WhoFollowsFindsThePrecisionOfTheRunAndOfPycocotools) {
  ASSERT_EQ(
      run(with_evaluation(training({"train", "--run", path("run"), "--metrics", path("metrics")},
                                   {"--steps", "30", "--stages", "1", "--evaluate-elsewhere"}))),
      0);
  const auto figures = followed({"--ssd-results", path("results")});
  const Json own = evaluations().back()["by_name"];
  ASSERT_EQ(figures.size(), own.size());
  for (const auto& [name, value] : figures) EXPECT_EQ(own[name], value) << name;
  EXPECT_GT(figures.at("AP"), 0) << "zeros would say nothing";
  const std::string python =
      std::filesystem::exists(".venv/bin/python") ? ".venv/bin/python" : "python3";
  if (std::system((python + " -c 'import pycocotools' 2> /dev/null").c_str()) != 0) {
    GTEST_SKIP() << "no pycocotools: compared with the run alone";
  }
  write("summary.py",
        "import sys\n"
        "from pycocotools.coco import COCO\n"
        "from pycocotools.cocoeval import COCOeval\n"
        "truth = COCO(sys.argv[1])\n"
        "judge = COCOeval(truth, truth.loadRes(sys.argv[2]), 'bbox')\n"
        "judge.evaluate()\njudge.accumulate()\njudge.summarize()\n"
        "print('figures:', *(float.hex(float(x)) for x in judge.stats))\n");
  const std::string command = python + " " + path("summary.py") + " " + path("val/instances.json") +
                              " " + path("results") + " > " + path("table");
  ASSERT_EQ(std::system(command.c_str()), 0);
  std::istringstream table(read_file(path("table")));
  std::string word;
  while (table >> word && word != "figures:") {
  }
  for (const char* name :
       {"AP", "AP50", "AP75", "APs", "APm", "APl", "AR1", "AR10", "AR100", "ARs", "ARm", "ARl"}) {
    ASSERT_TRUE(table >> word) << name;
    EXPECT_EQ(figures.at(name), std::strtod(word.c_str(), nullptr)) << name;
  }
}

TEST_F(SsdRecipe, TheSamplesDoNotDependOnTheModel) {
  const std::string identity = workload({}).training->identity();
  EXPECT_EQ(identity, workload({"--ssd-width", "12"}).training->identity());
  EXPECT_EQ(identity, workload({"--ssd-plain-norms"}).training->identity());
  EXPECT_EQ(identity, workload({"--ssd-channels-last"}).training->identity());
  EXPECT_NE(identity, workload({"--ssd-size", "96"}).training->identity());
  EXPECT_NE(identity, workload({"--ssd-no-flips"}).training->identity());
  EXPECT_NE(identity, workload({"--ssd-colors"}).training->identity());
  EXPECT_NE(identity, workload({"--ssd-max-boxes", "9"}).training->identity());
  EXPECT_NE(identity, workload({"--ssd-repeat", "2"}).training->identity());
  EXPECT_EQ(shape({}, "class_heads.0.weight"), (std::vector<std::int64_t>{12, 32, 3, 3}))
      << "two categories and background for four boxes";
}

TEST_F(SsdRecipe, DamagedImagesArePassedOverWithinTheBudget) {
  std::filesystem::resize_file(folder / "train/107.jpg", 300);
  const auto losses_with = [&](const std::string& budget) {
    const int code =
        run(serial({"--steps", "4", "--ssd-size", "32", "--metrics", path("metrics"),
                    "--ssd-skip-damaged", budget, "--ssd-quarantine", path("skipped")}));
    EXPECT_EQ(code, budget == "0" ? 1 : 0);
    return losses([](const Json& step) { return step["loss"].get<double>(); });
  };
  losses_with("0");
  EXPECT_EQ(losses_with("2").size(), 4U) << "a pass over the images";
  const Json entry = Json::parse(read_file(path("skipped")));
  EXPECT_EQ(entry["sample"], 7);
  EXPECT_THAT(entry["error"].get<std::string>(), HasSubstr("107.jpg"));
}

TEST_F(SsdRecipe, TrainingImagesAreRepeatedAndNoOthers) {
  const Workload made = workload(with_evaluation({"--ssd-repeat", "4", "--ssd-repeat-block", "8"}));
  EXPECT_EQ(made.training->repeats(), (data::SampleRepeats{.times = 4, .block_samples = 8}));
  EXPECT_EQ(made.evaluation->repeats().times, 1);
}

/// 5,750 steps of 1,024 images and 2,610 of 4,096; of 64 images 50 and 90.
TEST_F(SsdRecipe, BatchesAreCompared) {
  const auto printed = [&](const std::string& batches) {
    testing::internal::CaptureStdout();
    const int code = run({"train", "--ssd-compare-batches", batches});
    return std::to_string(code) + testing::internal::GetCapturedStdout();
  };
  EXPECT_THAT(printed("1024=100,4096=1000"),
              AllOf(HasSubstr("064 images"), HasSubstr("1024    50.0       50    100.0     0.00")));
  EXPECT_EQ(printed("none"), "2");
}

TEST_F(SsdRecipe, MisuseIsNamed) {
  EXPECT_EQ(run({"train", "--ssd-depth", "50"}), 2);
  EXPECT_EQ(run({"train", "--ssd-size", "16"}), 2);
  EXPECT_EQ(run({"train", "--ssd-width", "4"}), 2);
  EXPECT_EQ(run({"train", "--ssd-max-boxes", "1"}), 2);
  EXPECT_EQ(run({"train", "--ssd-images", path("nothing")}), 1);
  EXPECT_EQ(run({"train", "--ssd-annotations", path("nothing")}), 1);
  EXPECT_EQ(run({"train", "--ssd-results", path("results")}), 2) << "without an evaluation";
  write("other.json", R"({"images":[{"id":1,"file_name":"100.jpg","width":64,"height":64}],)"
                      R"("categories":[{"id":3,"name":"red"}],"annotations":[]})");
  EXPECT_EQ(run({"train", "--ssd-evaluation-annotations", path("other.json")}), 2);
}

}  // namespace
}  // namespace trireme::recipes::ssd
