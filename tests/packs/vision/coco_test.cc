#include <fmt/format.h>
#include <gtest/gtest.h>

#include <memory>
#include <random>

#include "packs/vision/coco/evaluate.h"
#include "packs/vision/coco/summary.h"
#include "tests/base/error_of.h"
#include "trireme/kernels/isa.h"

namespace trireme::vision {
namespace {

/// Images 5 and 9 of 100 x 100, categories 2 and 4.
std::string file_of(const std::string& annotations) {
  return R"({"images": [{"id": 9, "height": 100, "width": 100},
                        {"id": 5, "height": 100, "width": 100}],
             "categories": [{"id": 4, "name": "dog"}, {"id": 2, "name": "cat"}],
             "annotations": [)" +
         annotations + "]}";
}

std::string annotation(int id, int image, int category, double x, int is_crowd = 0) {
  return fmt::format(
      R"({{"id": {}, "image_id": {}, "category_id": {}, "bbox": [{}, 0, 10, 10], "area": 100,
          "iscrowd": {}}})",
      id, image, category, x, is_crowd);
}

CocoGroundTruth truth_of(const std::string& annotations) {
  return parse_ground_truth(file_of(annotations), CocoKind::kBox, "truth.json");
}

CocoSummary summary_of(const CocoGroundTruth& truth, const std::vector<double>& rows) {
  return summarize(evaluate_coco(truth, make_detections(rows, truth)));
}

TEST(Coco, APerfectDetectionScoresOne) {
  const CocoGroundTruth truth = truth_of(annotation(1, 5, 2, 0) + "," + annotation(2, 9, 2, 0));
  const CocoSummary summary = summary_of(truth, {5, 0, 0, 10, 10, 0.9, 2, 9, 0, 0, 10, 10, 0.8, 2});
  EXPECT_NEAR(summary.stats[0], 1, 1e-12);
  EXPECT_EQ(summary.stats[8], 1);
  EXPECT_EQ(summary.stats[4], -1);  // nothing of medium area
  EXPECT_NEAR(summary.category_ap[0], 1, 1e-12);
  EXPECT_EQ(summary.category_ap[1], -1);  // no dogs
}

TEST(Coco, NothingFoundScoresZero) {
  const CocoGroundTruth truth = truth_of(annotation(1, 5, 2, 0));
  EXPECT_EQ(summary_of(truth, {}).stats[0], 0);
  EXPECT_EQ(summary_of(truth_of(""), {5, 0, 0, 10, 10, 0.9, 2}).stats[0], -1);
}

TEST(Coco, WhatIsInACrowdIsLeftOut) {
  const CocoGroundTruth truth = truth_of(annotation(1, 5, 2, 0) + "," + annotation(2, 5, 2, 50, 1));
  // Two in the crowd, of higher score than the right one: no false positives.
  const CocoSummary summary =
      summary_of(truth, {5, 50, 0, 5, 5, 0.9, 2, 5, 52, 0, 5, 5, 0.8, 2, 5, 0, 0, 10, 10, 0.7, 2});
  EXPECT_NEAR(summary.stats[0], 1, 1e-12);
}

TEST(Coco, AnIdOfZeroIsNeverMatched) {
  const CocoGroundTruth truth = truth_of(annotation(0, 5, 2, 0));
  EXPECT_EQ(summary_of(truth, {5, 0, 0, 10, 10, 0.9, 2}).stats[0], 0);
}

TEST(Coco, OfEqualScoresTheFirstIsKept) {
  const CocoGroundTruth truth = truth_of(annotation(1, 5, 2, 0));
  const CocoSummary summary =
      summary_of(truth, {5, 0, 0, 10, 10, 0.5, 2, 5, 60, 0, 10, 10, 0.5, 2});
  EXPECT_EQ(summary.stats[6], 1);  // AR at one detection
}

TEST(Coco, AnnotationsAreSortedByCategoryAndImage) {
  const CocoGroundTruth truth =
      truth_of(annotation(1, 9, 4, 1) + "," + annotation(2, 5, 4, 2) + "," +
               annotation(3, 9, 2, 3) + "," + annotation(4, 77, 2, 4) + "," +
               annotation(5, 9, 77, 5));  // of an image and a category that are not listed
  EXPECT_EQ(truth.ids, (std::vector<std::int64_t>{3, 2, 1}));
  EXPECT_EQ(truth.category_begin, (std::vector<std::int64_t>{0, 1, 3}));
  EXPECT_EQ(truth.category_names, (std::vector<std::string>{"cat", "dog"}));
}

/// Many images and detections, some equal scores.
std::vector<double> random_rows(std::int64_t n) {
  std::mt19937 random(1);
  std::vector<double> rows;
  for (std::int64_t i = 0; i < n; ++i) {
    const double x = random() % 90;
    rows.insert(rows.end(), {random() % 2 == 0 ? 5.0 : 9.0, x, random() % 3 * 1.0, 10, 10,
                             random() % 50 / 50.0, random() % 3 == 0 ? 4.0 : 2.0});
  }
  return rows;
}

TEST(Coco, ThreadsAndInstructionSetsChangeNothing) {
  std::string annotations;
  for (int i = 1; i < 60; ++i) {
    annotations += (i > 1 ? "," : "") +
                   annotation(i, i % 2 == 0 ? 5 : 9, i % 5 == 0 ? 4 : 2, i * 1.5, i % 9 == 0);
  }
  const auto truth = std::make_shared<const CocoGroundTruth>(truth_of(annotations));
  const CocoDetections detections = make_detections(random_rows(20'000), *truth);
  const CocoCurves expected = evaluate_coco(*truth, detections);
  EXPECT_GT(summarize(expected).stats[0], 0);
  for (const Isa isa : {Isa::kPortable, Isa::kAvx2}) {
    const kernels::IsaLimit limit(isa);
    const CocoCurves curves =
        evaluate_coco_async(truth, detections,
                            {.max_dets = {1, 10, 100}, .spread = kernels::on_threads(3)})
            .get();
    EXPECT_EQ(curves.precision, expected.precision);
    EXPECT_EQ(curves.recall, expected.recall);
  }
}

TEST(Coco, DetectionsOfAFileAndOfRowsAreOne) {
  const CocoGroundTruth truth = truth_of(annotation(1, 5, 2, 0));
  const CocoDetections detections =
      parse_detections(R"([{"image_id": 5, "category_id": 2, "score": 1, "bbox": [0, 1, 10, 10]}])",
                       CocoKind::kBox, truth, "results.json");
  const std::vector<double> row = {5, 0, 1, 10, 10, 1, 2};
  const CocoDetections same = make_detections(row, truth);
  EXPECT_EQ(detections.boxes, same.boxes);
  EXPECT_EQ(detections.areas, same.areas);
  EXPECT_EQ(detections.images, same.images);
  EXPECT_EQ(detections.categories, same.categories);
}

TEST(Coco, ErrorsNameTheItem) {
  const CocoGroundTruth truth = truth_of(annotation(1, 5, 2, 0));
  const auto message = [&](const std::string& text, CocoKind kind = CocoKind::kBox) {
    return test::error_of([&] { parse_detections(text, kind, truth, "r.json"); }).message();
  };
  const std::string good = R"({"image_id": 5, "category_id": 2, "score": 1, "bbox": [0,1,2,3]})";
  EXPECT_EQ(message("[" + good + R"(, {"image_id": 5}])"), "r.json item 1: has no \"category_id\"");
  EXPECT_EQ(message(R"([{"image_id": 6, "category_id": 2}])"),
            "r.json item 0: the annotations have no image 6");
  EXPECT_EQ(message("[3]"), "r.json item 0: expected an object");
  EXPECT_EQ(message("{}"), "'r.json': expected a list of detections");
  EXPECT_EQ(message("[" + good), "'r.json' is not valid JSON after item 0");
  const std::string bad_score = R"({"image_id": 5, "category_id": 2, "score": )";
  for (const char* number : {"NaN", "1e400"}) {  // Python's json.dumps writes the first
    EXPECT_EQ(message("[" + good + "," + good + "," + bad_score + number + "}]"),
              "'r.json' is not valid JSON after item 1");
    EXPECT_EQ(message("[" + bad_score + number + "}]"), "'r.json' is not valid JSON in item 0");
  }
  EXPECT_EQ(message(R"([{"image_id": 5, "category_id": 2, "score": 1,
                         "segmentation": {"size": [3, 3], "counts": "9"}}])",
                    CocoKind::kMask),
            "r.json item 0: segmentation: expected the size of its image, [100,100], got [3,3]");
  EXPECT_EQ(test::error_of([&] { make_detections(std::vector<double>(8), truth); }).message(),
            "expected detections of 7 numbers each, got 8");
  const std::string twice = annotation(1, 5, 2, 0) + "," + annotation(1, 9, 2, 0);
  EXPECT_EQ(test::error_of([&] { truth_of(twice); }).message(),
            "truth.json annotations: two have the id 1");
  const CocoDetections none = make_detections({}, truth);
  EXPECT_EQ(test::error_of([&] { evaluate_coco(truth, none, {.max_dets = {1, 1, 2}}); }).message(),
            "expected limits of detections that ascend from 1, got 1 after 1");
  EXPECT_EQ(
      test::error_of([&] { evaluate_coco(truth, none, {.kind = CocoKind::kMask}); }).message(),
      "masks are to be evaluated, but annotations or detections were read for boxes");
}

TEST(Coco, DetectionsOfOtherAnnotationsAreRefused) {
  const CocoGroundTruth truth = truth_of(annotation(1, 5, 2, 0));
  const CocoGroundTruth other = parse_ground_truth(
      R"({"images": [{"id": 1}, {"id": 2}, {"id": 3}], "categories": [{"id": 2}],
          "annotations": []})",
      CocoKind::kBox, "other.json");
  const CocoDetections detections =
      make_detections(std::vector<double>{3, 0, 0, 10, 10, 0.9, 2}, other);
  EXPECT_EQ(test::error_of([&] { evaluate_coco(truth, detections); }).message(),
            "expected detections read with these annotations, of 2 images and 2 categories, got "
            "some read with 3 images and 1 categories");
}

TEST(Coco, ErrorsOfMasksNameTheItem) {
  const CocoGroundTruth sized = parse_ground_truth(file_of(""), CocoKind::kMask, "truth.json");
  const CocoGroundTruth unsized =
      parse_ground_truth(R"({"images": [{"id": 5}], "categories": [{"id": 2}], "annotations": []})",
                         CocoKind::kMask, "truth.json");
  const auto message = [](const std::string& shape, const CocoGroundTruth& truth) {
    const std::string text =
        R"([{"image_id": 5, "category_id": 2, "score": 1, "bbox": [0, 0, 1, 1]},
            {"image_id": 5, "category_id": 2, "score": 1, )" +
        shape + "}]";
    return test::error_of([&] { parse_detections(text, CocoKind::kMask, truth, "r.json"); })
        .message();
  };
  EXPECT_EQ(message(R"("bbox": [0, 0, 1e9, 1])", sized),
            "r.json item 1: expected coordinates of a polygon within 1e8, got 1000000000.000000");
  EXPECT_EQ(message(R"("bbox": [0, 0, 1, 1])", unsized),
            R"(r.json item 0: masks need "height" and "width", which its image 5 has not)");
  const std::string annotated =
      R"({"images": [{"id": 5}], "categories": [{"id": 2}], "annotations":
          [{"id": 1, "image_id": 5, "category_id": 2, "area": 1,
            "segmentation": [[0, 0, 1, 0, 1, 1]]}]})";
  EXPECT_EQ(
      test::error_of([&] { parse_ground_truth(annotated, CocoKind::kMask, "t.json"); }).message(),
      R"(t.json annotations item 0: masks need "height" and "width", which its image 5 has not)");
  const std::vector<Rle> masks = {{.size = {3, 4}}};
  EXPECT_EQ(test::error_of([&] {
              make_detections(std::vector<double>{5, 0, 0, 1, 1, 1, 2}, masks, sized);
            }).message(),
            "detection 0: expected a mask of the size of image 5, 100 x 100, got 3 x 4");
}

TEST(Coco, IdsInRowsAreWhole) {
  const CocoGroundTruth truth = truth_of(annotation(1, 5, 2, 0));
  const auto message = [&](double image, double category) {
    const std::vector<double> rows = {5, 0, 0, 1, 1, 1, 2, image, 0, 0, 1, 1, 1, category};
    return test::error_of([&] { make_detections(rows, truth); }).message();
  };
  EXPECT_EQ(message(5.7, 2), "detection 1: expected a whole image id within 2^53, got 5.7");
  EXPECT_EQ(message(5, 1e300), "detection 1: expected a whole category id within 2^53, got 1e+300");
  EXPECT_EQ(message(6, 2), "detection 1: the annotations have no image 6");
}

TEST(Coco, TheTableIsPycocotools) {
  const CocoGroundTruth truth = truth_of(annotation(1, 5, 2, 0));
  const CocoCurves curves =
      evaluate_coco(truth, make_detections(std::vector<double>{5, 0, 0, 10, 10, 0.9, 2}, truth));
  const std::string table = to_table(summarize(curves), curves);
  EXPECT_EQ(table.substr(0, table.find('\n')),
            " Average Precision  (AP) @[ IoU=0.50:0.95 | area=   all | maxDets=100 ] = 1.000");
  EXPECT_NE(table.find(" Average Recall     (AR) @[ IoU=0.50:0.95 | area= large | maxDets=100 ] = "
                       "-1.000\n"),
            std::string::npos);
}

}  // namespace
}  // namespace trireme::vision
