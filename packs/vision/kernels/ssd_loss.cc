#include "packs/vision/kernels/ssd_loss.h"

#include <cmath>
#include <vector>

#include "packs/vision/kernels/selection.h"
#include "trireme/kernels/loss/cross_entropy.h"

namespace trireme::vision {
namespace {

constexpr std::int64_t kCorners = 4;

double smooth_l1(float d) {
  const double size = std::abs(static_cast<double>(d));
  return size < 1 ? size * size / 2 : size - 0.5;
}

/// NaN stays.
float slope_of(float d) { return d < -1 ? -1 : d > 1 ? 1 : d; }

kernels::ClassRows rows_of(const SsdBatch& batch, const std::int64_t* classes) {
  return {.logits = batch.logits,
          .classes = classes,
          .num_rows = batch.num_images * batch.num_anchors,
          .num_classes = batch.num_classes};
}

/// The parts of `made` that one image has.
struct ImageChoices {
  std::span<std::int64_t> classes;
  std::span<std::uint8_t> is_chosen;
  std::span<const float> losses;
  float* slopes;
};

/// Marks the matched anchors, with classes and slopes.
void match_image(const SsdTruth& truth, float threshold, const float* codes,
                 const ImageChoices& made, const SsdSumsOfImages& sums) {
  const std::vector<std::int64_t> matches = ssd_matches(truth, threshold);
  double total = 0;
  std::int64_t num_matched = 0;
  for (std::int64_t a = 0; a < truth.num_anchors(); ++a) {
    const std::int64_t match = matches[a];
    made.is_chosen[a] = match >= 0 ? 1 : 0;
    if (match < 0) continue;
    ++num_matched;
    made.classes[a] = truth.labels[match];
    float target[kCorners];
    encode_boxes(kSsdCoding, truth.box(match), truth.anchor(a), 1, target);
    for (std::int64_t i = a * kCorners, k = 0; k < kCorners; ++k) {
      const float distance = codes[i + k] - target[k];
      total += smooth_l1(distance);
      made.slopes[i + k] = slope_of(distance);
    }
  }
  *sums.boxes = static_cast<float>(total);
  *sums.num_matched = num_matched;
}

/// Marks the hard negatives too.
float choose_and_sum(const ImageChoices& made, double ratio) {
  const std::vector<std::uint8_t> is_matched(made.is_chosen.begin(), made.is_chosen.end());
  mine_hard_negatives(made.losses, is_matched, ratio, made.is_chosen);
  double total = 0;
  for (std::size_t a = 0; a < made.losses.size(); ++a) {
    if (made.is_chosen[a] != 0) total += made.losses[a];
  }
  return static_cast<float>(total);
}

}  // namespace

SsdTruth SsdBatch::truth(std::int64_t image) const {
  return {.boxes = boxes + image * num_places * kCorners,
          .labels = {labels + image * num_places, static_cast<std::size_t>(num_places)},
          .anchors = {anchors, static_cast<std::size_t>(num_anchors * kCorners)}};
}

void ssd_loss(const SsdLossOptions& options, const SsdBatch& batch, const SsdSumsOfImages& sums,
              const MadeSsdChoices& made, const kernels::Spread& spread) {
  internal::check_ratio(options.negatives_ratio);
  const std::int64_t n = batch.num_anchors;
  std::vector<float> losses(static_cast<std::size_t>(batch.num_images * n));
  const auto part = [&](std::int64_t b) -> ImageChoices {
    const auto count = static_cast<std::size_t>(n);
    return {.classes = {made.classes + b * n, count},
            .is_chosen = {made.is_chosen + b * n, count},
            .losses = {losses.data() + b * n, count},
            .slopes = made.slopes + b * n * kCorners};
  };
  for_each_image(batch.num_images, spread, [&](std::int64_t b) {
    match_image(batch.truth(b), static_cast<float>(options.overlap), batch.codes + b * n * kCorners,
                part(b), {.boxes = sums.boxes + b, .num_matched = sums.num_matched + b});
  });
  kernels::cross_entropy(rows_of(batch, made.classes), losses.data(), made.log_sums, spread);
  for_each_image(batch.num_images, spread, [&](std::int64_t b) {
    sums.classes[b] = choose_and_sum(part(b), options.negatives_ratio);
  });
}

void ssd_loss_backward(const SsdBatch& batch, const GivenSsdChoices& choices,
                       const SsdSumGradients& gradients, float* codes, float* logits,
                       const kernels::Spread& spread) {
  const std::int64_t n = batch.num_anchors;
  std::vector<float> of_rows(static_cast<std::size_t>(batch.num_images * n));
  spread(batch.num_images, [&](std::int64_t b) {
    for (std::int64_t i = b * n; i < (b + 1) * n; ++i) {
      of_rows[i] = choices.is_chosen[i] != 0 ? gradients.classes[b] : 0;
    }
    for (std::int64_t i = b * n * kCorners; i < (b + 1) * n * kCorners; ++i) {
      codes[i] = choices.slopes[i] * gradients.boxes[b];
    }
  });
  kernels::cross_entropy_backward(rows_of(batch, choices.classes), choices.log_sums, of_rows.data(),
                                  logits, spread);
}

}  // namespace trireme::vision
