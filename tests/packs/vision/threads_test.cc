// Kernels that threads share give the bits of one thread, also where sizes make many pieces.

#include <gtest/gtest.h>

#include <algorithm>
#include <random>
#include <string>
#include <vector>

#include "packs/vision/kernels/boxes.h"
#include "packs/vision/kernels/matching.h"
#include "packs/vision/kernels/nms.h"
#include "packs/vision/kernels/ssd_loss.h"
#include "tests/kernels/same_bits.h"
#include "trireme/error.h"

namespace trireme::vision {
namespace {

using tests::append_bits;
using tests::Bytes;
using tests::expect_same_bits;

struct Scene {
  std::vector<float> boxes, scores;
  std::vector<std::int64_t> classes;
};

Scene make_scene(std::int64_t n) {
  std::mt19937 random(5);
  std::uniform_real_distribution<float> place(0, 2000), extent(1, 60), score(0, 1);
  Scene scene;
  for (std::int64_t i = 0; i < n; ++i) {
    const float x = place(random), y = place(random);
    scene.boxes.insert(scene.boxes.end(), {x, y, x + extent(random), y + extent(random)});
    scene.scores.push_back(score(random));
    scene.classes.push_back(static_cast<std::int64_t>(random() % 7));
  }
  return scene;
}

TEST(VisionThreads, ChangeNothingInSuppression) {
  const Scene scene = make_scene(40'000);
  expect_same_bits("nms", [&](const kernels::Spread& spread) {
    Bytes made;
    append_bits(nms(scene.boxes, scene.scores, {.threshold = 0.3}, spread), made);
    return made;
  });
  expect_same_bits("batched_nms", [&](const kernels::Spread& spread) {
    Bytes made;
    append_bits(batched_nms(scene.boxes, scene.scores, scene.classes, {.max_kept = 900}, spread),
                made);
    return made;
  });
}

TEST(VisionThreads, ChangeNothingInOverlapsCodesAndMatching) {
  constexpr std::int64_t kTruth = 17, kAnchors = 40'000;
  const Scene scene = make_scene(kTruth + kAnchors);
  const float *truth = scene.boxes.data(), *anchors = truth + kTruth * 4;
  std::vector<float> overlaps(kTruth * kAnchors);
  expect_same_bits("box_overlaps", [&](const kernels::Spread& spread) {
    std::ranges::fill(overlaps, -1.0F);
    box_overlaps(truth, kTruth, anchors, kAnchors, overlaps.data(), spread);
    Bytes made;
    append_bits(overlaps, made);
    return made;
  });
  const auto match = [&](const char* what, const auto& call) {
    expect_same_bits(what, [&](const kernels::Spread& spread) {
      std::vector<std::int64_t> matches(kAnchors, -7);
      call(matches, spread);
      Bytes made;
      append_bits(matches, made);
      return made;
    });
  };
  match("match_anchors", [&](auto& matches, const kernels::Spread& spread) {
    match_anchors({.high = 0.4F, .low = 0.1F}, overlaps, kTruth, matches, spread);
  });
  match("match_ssd", [&](auto& matches, const kernels::Spread& spread) {
    match_ssd(0.3F, overlaps, kTruth, matches, spread);
  });
  expect_same_bits("box codes", [&](const kernels::Spread& spread) {
    std::vector<float> codes(kAnchors / 2 * 4), decoded(codes.size());
    const float* boxes = anchors + kAnchors / 2 * 4;
    encode_boxes({}, boxes, anchors, kAnchors / 2, codes.data(), spread);
    decode_boxes({}, codes.data(), anchors, kAnchors / 2, decoded.data(), spread);
    Bytes made;
    append_bits(codes, made);
    append_bits(decoded, made);
    return made;
  });
}

TEST(VisionThreads, ChangeNothingInSsdLosses) {
  constexpr std::int64_t kImages = 5, kPlaces = 3, kAnchors = 2'000, kClasses = 21;
  const Scene anchors = make_scene(kAnchors);
  std::mt19937 random(6);
  std::normal_distribution<float> normal;
  std::vector<float> codes(kImages * kAnchors * 4), logits(kImages * kAnchors * kClasses), boxes;
  std::vector<std::int64_t> labels;
  std::ranges::generate(codes, [&] { return normal(random); });
  std::ranges::generate(logits, [&] { return normal(random); });
  for (std::int64_t i = 0; i < kImages * kPlaces; ++i) {  // some of the anchors, a little wider
    const auto anchor = anchors.boxes.begin() + 4 * (i * 130);
    boxes.insert(boxes.end(), anchor, anchor + 4);
    boxes[boxes.size() - 2] += 0.5F;
    labels.push_back(i % 4);  // images with 0 to 3 boxes
  }
  const SsdBatch batch = {.num_images = kImages,
                          .num_anchors = kAnchors,
                          .num_classes = kClasses,
                          .num_places = kPlaces,
                          .codes = codes.data(),
                          .logits = logits.data(),
                          .boxes = boxes.data(),
                          .labels = labels.data(),
                          .anchors = anchors.boxes.data()};
  const std::vector<float> gradients = {1, -2, 3, 4, 5};
  expect_same_bits("ssd_loss", [&](const kernels::Spread& spread) {
    std::vector<float> of_boxes(kImages), of_classes(kImages), log_sums(kImages * kAnchors);
    std::vector<float> slopes(codes.size()), by_codes(codes.size()), by_logits(logits.size());
    std::vector<std::int64_t> num_matched(kImages), classes(kImages * kAnchors);
    std::vector<std::uint8_t> is_chosen(kImages * kAnchors);
    ssd_loss(
        {}, batch,
        {.boxes = of_boxes.data(), .classes = of_classes.data(), .num_matched = num_matched.data()},
        {.classes = classes.data(),
         .is_chosen = is_chosen.data(),
         .log_sums = log_sums.data(),
         .slopes = slopes.data()},
        spread);
    ssd_loss_backward(batch,
                      {.classes = classes.data(),
                       .is_chosen = is_chosen.data(),
                       .log_sums = log_sums.data(),
                       .slopes = slopes.data()},
                      {.boxes = gradients, .classes = gradients}, by_codes.data(), by_logits.data(),
                      spread);
    Bytes made;
    for (const auto* values : {&of_boxes, &of_classes, &by_codes, &by_logits}) {
      append_bits(*values, made);
    }
    append_bits(num_matched, made);
    return made;
  });
}

TEST(VisionThreads, NameTheFirstBadBox) {
  Scene scene = make_scene(40'000);
  for (const std::int64_t bad : {9'000, 20'000, 33'000}) scene.boxes[bad * 4] = 1e9F;
  std::vector<float> codes(40'000 * 4);
  try {
    encode_boxes({}, scene.boxes.data(), scene.boxes.data(), 40'000, codes.data(),
                 kernels::on_threads(3));
    ADD_FAILURE() << "was taken";
  } catch (const Error& error) {
    EXPECT_NE(error.message().find("box 9000 "), std::string::npos) << error.message();
  }
}

}  // namespace
}  // namespace trireme::vision
