#include <ATen/CPUGeneratorImpl.h>
#include <torch/torch.h>

#include <cmath>

#include "packs/vision/coco/summary.h"
#include "tests/base/test_folder.h"
#include "tests/engine/metrics/measured.h"
#include "trireme/base/json.h"

namespace trireme::metrics {
namespace {

using testing::HasSubstr;

class AveragePrecisionMetric : public test::TestFolder {
 protected:
  static MakeMetric precision_of(const AveragePrecisionOptions& options = {}) {
    return [options] { return average_precision(options); };
  }

  torch::Tensor boxes = torch::tensor({10.0, 10.0, 50.0, 50.0, 60.0, 60.0, 90.0, 90.0,  //
                                       0.0, 0.0, 40.0, 40.0, 0.0, 0.0, 0.0, 0.0})
                            .view({2, 2, 4});
  torch::Tensor true_labels = torch::tensor({1, 2, 1, -1}).view({2, 2});
  torch::Tensor scores = torch::tensor({0.9, 0.8, 0.7, 0.0}).view({2, 2});

  Tensors outputs(const torch::Tensor& labels) const {
    return {{"boxes", boxes},
            {"scores", scores},
            {"labels", labels},
            {"true_boxes", boxes},
            {"true_labels", true_labels}};
  }
};

TEST_F(AveragePrecisionMetric, OfBoxesBesideTrueOnes) {
  const Results perfect = measured(precision_of(), outputs(true_labels));
  ASSERT_EQ(perfect.size(), 12U);
  for (const char* name : {"AP", "AP50", "AR1", "AR100", "APm"}) {
    EXPECT_NEAR(perfect.at(name), 1, 1e-12) << name;
  }
  EXPECT_EQ(perfect.at("APl"), -1) << "no box is large";
  // Class 2 is never found, class 1 always; class 9, which is nowhere, does not count.
  const Results half = measured(precision_of(), outputs(torch::tensor({1, 9, 1, -1}).view({2, 2})));
  EXPECT_NEAR(half.at("AP"), 0.5, 1e-12);
}

TEST_F(AveragePrecisionMetric, ABetterScoreThatIsWrong) {
  // Precision of class 1 is 1 / 2, then 2 / 3, at all recalls.
  Tensors given = outputs(torch::tensor({1, 2, 1, 1}).view({2, 2}));
  given["boxes"] = boxes.clone();
  given["boxes"][1][1].copy_(torch::tensor({90.0, 0.0, 99.0, 9.0}));
  given["scores"] = torch::tensor({0.8, 0.8, 0.7, 0.9}).view({2, 2});
  const Results worse = measured(precision_of({.prefix = "val/"}), given);
  EXPECT_NEAR(worse.at("val/AP"), (2.0 / 3 + 1) / 2, 1e-12);
}

TEST_F(AveragePrecisionMetric, BesideAFileOfWhoseImagesThoseCountThatCome) {
  write("truth.json", R"({"images": [{"id": 7}, {"id": 8}, {"id": 9}],
    "categories": [{"id": 5, "name": "bird"}],
    "annotations": [
      {"id": 1, "image_id": 7, "category_id": 5, "bbox": [10, 10, 40, 40], "area": 1600, "iscrowd": 0},
      {"id": 2, "image_id": 9, "category_id": 5, "bbox": [0, 0, 10, 10], "area": 100, "iscrowd": 0}]})");
  const auto with_images = [&](std::initializer_list<std::int64_t> images) {
    Tensors given = outputs(torch::tensor({5, -1, -1, -1}).view({2, 2}));
    given["image_ids"] = torch::tensor(std::vector<std::int64_t>(images));
    return given;
  };
  const auto precision = precision_of({.truth = path("truth.json")});
  EXPECT_NEAR(measured(precision, with_images({7, 8})).at("AP"), 1, 1e-12);
  EXPECT_EQ(measured(precision, with_images({9, 7})).at("AR100"), 0) << "found on the wrong image";
  EXPECT_EQ(measured(precision, with_images({7, 9})).at("AR100"), 0.5);
  EXPECT_THAT(refusal(precision, with_images({7, 6})), HasSubstr("the truth has no image 6"));
  EXPECT_THAT(refusal(precision, with_images({7, 7})), HasSubstr("image 7 came twice"));
  EXPECT_EQ(test::error_of([&] { average_precision({.truth = path("none.json")}); }).kind(),
            ErrorKind::kIo);
}

/// All twelve figures, of random boxes, as a COCO file of the same truth and the file of what was found give them.
TEST_F(AveragePrecisionMetric, HasTheBitsOfAnEvaluationOfFiles) {
  const auto generator = at::make_generator<at::CPUGeneratorImpl>(3);
  const auto corners = torch::randint(0, 80, {6, 5, 2}, generator).to(torch::kDouble);
  const auto sides = torch::randint(1, 120, {6, 5, 2}, generator).to(torch::kDouble);
  const auto there = torch::cat({corners, corners + sides}, 2);
  const auto labels = torch::randint(1, 4, {6, 5}, generator, torch::kLong);
  const Tensors given = {{"boxes", there + torch::rand({6, 5, 4}, generator) * 9},
                         {"scores", torch::rand({6, 5}, generator)},
                         {"labels", labels},
                         {"true_boxes", there},
                         {"true_labels", labels}};
  Json truth = {
      {"images", Json::array()}, {"categories", Json::array()}, {"annotations", Json::array()}};
  for (int k = 1; k < 4; ++k) truth["categories"].push_back({{"id", k}, {"name", "some"}});
  for (int i = 0; i < 30; ++i) {
    if (i % 5 == 0) truth["images"].push_back({{"id", i / 5}});
    const auto box = torch::cat({corners[i / 5][i % 5], sides[i / 5][i % 5]});
    const std::vector<double> numbers(box.data_ptr<double>(), box.data_ptr<double>() + 4);
    truth["annotations"].push_back({{"id", i + 1},
                                    {"image_id", i / 5},
                                    {"category_id", labels[i / 5][i % 5].item<std::int64_t>()},
                                    {"bbox", numbers},
                                    {"area", numbers[2] * numbers[3]}});
  }
  write("truth.json", truth.dump());
  const Results found = measured(precision_of({.found = path("found.json")}), given);
  const Json stats =
      vision::evaluate_coco_files(path("truth.json"), path("found.json"), {}).json["stats"];
  ASSERT_EQ(stats.size(), 12U);
  for (const auto& [name, value] : stats.items()) EXPECT_EQ(found.at(name), value) << name;
  EXPECT_GT(found.at("AP50"), found.at("AP75"));
}

TEST_F(AveragePrecisionMetric, WhatItRefuses) {
  Tensors given = outputs(true_labels);
  given["true_labels"] = torch::tensor({1, 2, 1, 0}).view({2, 2});
  EXPECT_THAT(refusal(precision_of(), given),
              HasSubstr("sample 1 has a true box of label 0 without an area, 0 x 0"));
  EXPECT_THAT(refusal(precision_of(), outputs(torch::tensor({1, 2}))),
              HasSubstr("give boxes [samples, objects, 4] and labels [samples, objects]"));
  given = outputs(true_labels);
  given["scores"] = torch::tensor({0.5, 0.5});
  EXPECT_THAT(refusal(precision_of(), given), HasSubstr("output 'scores' has shape [2]"));
  given["scores"] = torch::tensor({0.9, std::nan(""), 0.7, 0.0}).view({2, 2});
  EXPECT_THAT(refusal(precision_of(), given), HasSubstr("expected finite numbers"));
  given["labels"] = torch::full({2, 2}, 0.5);
  EXPECT_THAT(refusal(precision_of(), given), HasSubstr("'labels' has labels that are not whole"));
}

}  // namespace
}  // namespace trireme::metrics
