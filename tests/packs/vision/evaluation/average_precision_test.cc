#include <ATen/CPUGeneratorImpl.h>
#include <torch/torch.h>

#include <cmath>

#include "packs/vision/coco/rle.h"
#include "packs/vision/coco/summary.h"
#include "tests/base/test_folder.h"
#include "tests/engine/metrics/measured.h"
#include "trireme/base/files.h"
#include "trireme/base/json.h"

namespace trireme::metrics {
namespace {

using testing::AllOf;
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

/// Masks of rectangles, in the three forms that say the same.
class MaskPrecision : public AveragePrecisionMetric {
 protected:
  static constexpr std::int64_t kHeight = 60, kWidth = 80;

  MaskPrecision() {
    given = outputs(true_labels);
    given["true_boxes"] = given["boxes"] =
        torch::tensor({10.0, 10.0, 50.0, 50.0, 60.0, 20.0, 80.0, 60.0,  //
                       0.0, 0.0, 40.0, 40.0, 0.0, 0.0, 0.0, 0.0})
            .view({2, 2, 4});
    given["masks"] = pixels(given["boxes"]);
    given["true_masks"] = given["masks"].clone();
  }

  static torch::Tensor pixels(const torch::Tensor& boxes) {
    const auto masks = torch::zeros({2, 2, kHeight, kWidth}, torch::kBool);
    for (int i = 0; i < 4; ++i) {
      const auto box = boxes[i / 2][i % 2].to(torch::kLong);
      const auto at = [&](int k) { return box[k].item<std::int64_t>(); };
      masks[i / 2][i % 2].slice(0, at(1), at(3)).slice(1, at(0), at(2)).fill_(true);
    }
    return masks;
  }

  /// COCO's counts of such masks, which are not empty but for the last.
  static torch::Tensor runs(const torch::Tensor& masks) {
    const auto runs = torch::full({2, 2, 200}, -1, torch::kLong);
    for (int i = 0; i < 4; ++i) {
      const auto columns = masks[i / 2][i % 2].t().contiguous().flatten();
      const bool* pixel = columns.const_data_ptr<bool>();
      std::int64_t begin = 0, count = 0;
      bool is_one = false;
      for (std::int64_t p = 0; p <= columns.numel(); ++p) {
        if (p < columns.numel() && pixel[p] == is_one) continue;
        runs[i / 2][i % 2][count++] = p - begin;
        begin = p;
        is_one = !is_one;
      }
    }
    return runs;
  }

  Tensors with_image(std::int64_t id) const {
    Tensors others = given;
    others["image_ids"] = torch::tensor({id, std::int64_t{8}}, torch::kLong);
    return others;
  }

  static AveragePrecisionOptions with_masks() { return {.masks = "masks"}; }

  Tensors given;
};

TEST_F(MaskPrecision, OfMasksBesideBoxes) {
  const Results perfect = measured(precision_of(with_masks()), given);
  ASSERT_EQ(perfect.size(), 24U);
  for (const char* name : {"AP", "mask AP", "mask AP50", "mask AR100", "mask APm"}) {
    EXPECT_NEAR(perfect.at(name), 1, 1e-12) << name;
  }
  EXPECT_EQ(perfect.at("mask APl"), -1);
  // Boxes as before; of one mask of class 1 three quarters are gone.
  given["masks"][0][0].slice(0, 20).fill_(false);
  const Results worse = measured(precision_of(with_masks()), given);
  EXPECT_NEAR(worse.at("AP"), 1, 1e-12);
  EXPECT_LT(worse.at("mask AP50"), 0.9);
  EXPECT_GT(worse.at("mask AP50"), 0.5);
}

TEST_F(MaskPrecision, FormsThatSayTheSameGiveTheSame) {
  given["masks"][0][0].slice(0, 20).fill_(false);
  const Results expected = measured(precision_of(with_masks()), given);
  given["masks"] = runs(given["masks"]);
  EXPECT_EQ(measured(precision_of(with_masks()), given), expected);
  // Soft masks of whole boxes fade out over the edge: nearly the pixels of the box.
  given["masks"] = torch::ones({2, 2, 28, 28});
  EXPECT_NEAR(measured(precision_of(with_masks()), given).at("mask AP75"), 1, 1e-12);
  given["masks"] = torch::full({2, 2, 28, 28}, 0.49);
  EXPECT_EQ(measured(precision_of(with_masks()), given).at("mask AR100"), 0) << "cut at a half";
}

/// A file whose annotations have a polygon, runs and compressed runs, on images of several sizes.
TEST_F(MaskPrecision, BesideAFileOfPolygonsAndRuns) {
  const auto mask = [](const char* segmentation, int id, int image) {
    return R"({"id": )" + std::to_string(id) + R"(, "image_id": )" + std::to_string(image) +
           R"(, "category_id": 1, "bbox": [10, 10, 40, 40], "area": 1600, "iscrowd": 0, )" +
           R"("segmentation": )" + segmentation + "}";
  };
  const vision::ImageSize size{kHeight, kWidth};
  const std::vector<std::int64_t> counts = {0, 40, 20, 40, kHeight * kWidth - 100};
  const std::string text = vision::to_text(vision::from_counts(size, counts));
  write("truth.json",
        R"({"images": [{"id": 7, "height": 60, "width": 80}, {"id": 8, "height": 60, "width": 80},
        {"id": 9, "height": 50, "width": 50}], "categories": [{"id": 1, "name": "bird"}],
        "annotations": [)" +
            mask("[[10, 10, 50, 10, 50, 50, 10, 50]]", 1, 7) + "," +
            mask(R"({"size": [60, 80], "counts": [0, 40, 20, 40, 4700]})", 2, 8) + "," +
            mask(R"([[5, 5, 20, 5, 20, 20]])", 3, 9) + "]}");
  given["labels"] = torch::tensor({1, -1, 1, -1}).view({2, 2});
  given["image_ids"] = torch::tensor({7, 8}, torch::kLong);
  given["masks"].zero_();
  given["masks"][0][0].slice(0, 10, 50).slice(1, 10, 50).fill_(true);
  given["masks"][1][0].slice(0, 0, 40).slice(1, 0, 2).fill_(true);
  AveragePrecisionOptions options = with_masks();
  options.truth = path("truth.json");
  options.found_masks = path("found.json");
  EXPECT_NEAR(measured(precision_of(options), given).at("mask AP"), 1, 1e-12);
  const Json found = Json::parse(read_file(path("found.json")));
  ASSERT_EQ(found.size(), 2U);
  EXPECT_EQ(found[1]["segmentation"]["counts"], text);
  EXPECT_FALSE(found[1].contains("bbox"));
  const Results whole = measured(precision_of(options), given);
  const Json stats = vision::evaluate_coco_files(path("truth.json"), path("found.json"),
                                                 {.kind = vision::CocoKind::kMask})
                         .json["stats"];
  EXPECT_LT(stats["AP"].get<double>(), whole.at("mask AP")) << "with the third image";
  given["masks"][0][0][55][5] = true;
  EXPECT_THAT(refusal(precision_of(options), with_image(9)),
              AllOf(HasSubstr("sample 0, object 0, in an image of 50 x 50 pixels"),
                    HasSubstr("pixels beyond it, in row 55")));
}

/// A wrong mask that is small in a box that is not: it does not count among those of medium size, as of a file without boxes.
TEST_F(MaskPrecision, GoIntoRangesByTheirOwnAreas) {
  write("truth.json",
        R"({"images": [{"id": 7, "height": 60, "width": 80}, {"id": 8, "height": 60, "width": 80}],
        "categories": [{"id": 1, "name": "bird"}], "annotations": [
        {"id": 1, "image_id": 7, "category_id": 1, "bbox": [10, 10, 40, 40], "area": 1600, "iscrowd": 0,
         "segmentation": [[10, 10, 50, 10, 50, 50, 10, 50]]}]})");
  given["boxes"][0][1].copy_(torch::tensor({20.0, 0.0, 80.0, 60.0}));
  given["masks"].zero_();
  given["masks"][0][0].slice(0, 10, 50).slice(1, 10, 50).fill_(true);
  given["masks"][0][1].slice(0, 0, 2).slice(1, 70, 72).fill_(true);
  given["scores"] = torch::tensor({0.8, 0.9, 0.7, 0.0}).view({2, 2});
  given["labels"] = torch::tensor({1, 1, -1, -1}).view({2, 2});
  given["image_ids"] = torch::tensor({7, 8}, torch::kLong);
  AveragePrecisionOptions options = with_masks();
  options.truth = path("truth.json");
  options.found_masks = path("found.json");
  const Results found = measured(precision_of(options), given);
  const Json stats = vision::evaluate_coco_files(path("truth.json"), path("found.json"),
                                                 {.kind = vision::CocoKind::kMask})
                         .json["stats"];
  for (const auto& [name, value] : stats.items())
    EXPECT_EQ(found.at("mask " + name), value) << name;
  EXPECT_NEAR(found.at("mask APm"), 1, 1e-12);
  EXPECT_NEAR(found.at("mask AP"), 0.5, 1e-12);
  EXPECT_NEAR(found.at("APm"), 0.5, 1e-12) << "of boxes it does";
}

TEST_F(MaskPrecision, WhatIsRefused) {
  const auto refused = [&](const char* name, const torch::Tensor& masks) {
    Tensors other = given;
    other[name] = masks;
    return refusal(precision_of(with_masks()), other);
  };
  EXPECT_THAT(refused("masks", torch::ones({2, 2, 4})), HasSubstr("give bool [samples, objects"));
  EXPECT_THAT(refused("masks", torch::ones({2, 2, 4, 5})),
              HasSubstr("floats [samples, objects, side"));
  EXPECT_THAT(refused("masks", torch::full({2, 2, 3}, 7, torch::kLong)),
              HasSubstr("output 'masks': sample 0, object 0, in an image of 60 x 80 pixels: "));
  EXPECT_THAT(refused("masks", torch::ones({2, 2, 50, 80}, torch::kBool)),
              HasSubstr("masks have 50 x 80 pixels"));
  EXPECT_THAT(refused("true_masks", torch::ones({2, 2, 28, 28})),
              HasSubstr("give bool [samples, objects, height, width]"));
  EXPECT_THAT(refused("true_masks", torch::zeros({2, 2, 60, 80}, torch::kBool)),
              HasSubstr("sample 0 has a true mask of label 1 without an area"));
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
