#include "packs/vision/operators/ssd_targets.h"

#include <ATen/Functions.h>
#include <torch/library.h>

#include <algorithm>
#include <span>
#include <string>
#include <tuple>
#include <vector>

#include "packs/vision/kernels/boxes.h"
#include "packs/vision/kernels/matching.h"
#include "trireme/engine/operators/kernel_operator.h"
#include "trireme/error.h"

namespace trireme::vision {
namespace {

using operators::internal::Expect;
using operators::internal::kernel_below_autograd;
using operators::internal::under_autocast;
using Targets = std::tuple<at::Tensor, at::Tensor>;

constexpr std::int64_t kCorners = 4;

/// One image's part of the batch. Boxes are those in front of the first label 0.
struct TargetsOfImage {
  const float* boxes;
  std::span<const std::int64_t> labels;
  std::span<const float> anchors;
  std::int64_t* classes;
  float* codes;

  std::int64_t num_anchors() const { return std::ssize(anchors) / kCorners; }
};

/// Matches, then codes of the matched anchors alone.
void match_image(const TargetsOfImage& image, float threshold) {
  const std::int64_t num_boxes = std::ranges::find(image.labels, 0) - image.labels.begin();
  const std::int64_t num_anchors = image.num_anchors();
  std::vector<float> overlaps(static_cast<std::size_t>(num_boxes * num_anchors));
  box_overlaps(image.boxes, num_boxes, image.anchors.data(), num_anchors, overlaps.data());
  std::vector<std::int64_t> matches(static_cast<std::size_t>(num_anchors));
  match_ssd(threshold, overlaps, num_boxes, matches);
  for (std::int64_t a = 0; a < num_anchors; ++a) {
    const std::int64_t match = matches[static_cast<std::size_t>(a)];
    if (match < 0) continue;
    image.classes[a] = image.labels[static_cast<std::size_t>(match)];
    encode_boxes(kSsdCoding, image.boxes + kCorners * match, image.anchors.data() + kCorners * a, 1,
                 image.codes + kCorners * a);
  }
}

Targets run_ssd_targets(const at::Tensor& given_boxes, const at::Tensor& given_labels,
                        const at::Tensor& given_anchors, double threshold) {
  const Expect expect("ssd_targets");
  expect.dtype("boxes", given_boxes, {at::kFloat});
  expect.dtype("labels", given_labels, {at::kLong});
  expect.dtype("anchors", given_anchors, {at::kFloat});
  expect.dims("labels", given_labels, 2);
  expect.shape("boxes", given_boxes, {given_labels.size(0), given_labels.size(1), kCorners});
  expect.dims("anchors", given_anchors, 2);
  expect.shape("anchors", given_anchors, {given_anchors.size(0), kCorners});
  const at::Tensor boxes = given_boxes.contiguous(), labels = given_labels.contiguous();
  const at::Tensor anchors = given_anchors.contiguous();
  const std::int64_t batch = labels.size(0), places = labels.size(1), count = anchors.size(0);
  Targets result = {at::zeros({batch, count}, at::kLong),
                    at::zeros({batch, count, kCorners}, at::kFloat)};
  const auto* all_boxes = static_cast<const float*>(boxes.const_data_ptr());
  const auto* all_labels = static_cast<const std::int64_t*>(labels.const_data_ptr());
  auto* classes = static_cast<std::int64_t*>(std::get<0>(result).mutable_data_ptr());
  auto* codes = static_cast<float*>(std::get<1>(result).mutable_data_ptr());
  const std::span corners(static_cast<const float*>(anchors.const_data_ptr()),
                          static_cast<std::size_t>(anchors.numel()));
  operators::internal::on_torch_threads(batch, [&](std::int64_t b) {
    try {
      match_image({.boxes = all_boxes + b * places * kCorners,
                   .labels = {all_labels + b * places, static_cast<std::size_t>(places)},
                   .anchors = corners,
                   .classes = classes + b * count,
                   .codes = codes + b * count * kCorners},
                  static_cast<float>(threshold));
    } catch (const Error& error) {
      expect.fail("image " + std::to_string(b) + ": " + error.message());
    }
  });
  return result;
}

TORCH_LIBRARY_FRAGMENT(trireme, library) {
  library.def(
      "ssd_targets(Tensor boxes, Tensor labels, Tensor anchors, float threshold=0.5) -> "
      "(Tensor classes, Tensor codes)");
  library.impl("ssd_targets", kernel_below_autograd(run_ssd_targets));
}

TORCH_LIBRARY_IMPL(trireme, AutocastCPU, library) { library.impl("ssd_targets", under_autocast()); }

}  // namespace

SsdTargets ssd_targets(const at::Tensor& boxes, const at::Tensor& labels, const at::Tensor& anchors,
                       double threshold) {
  static const auto op =
      operators::internal::find_operator<decltype(run_ssd_targets)>("trireme::ssd_targets");
  const auto [classes, codes] = op.call(boxes, labels, anchors, threshold);
  return {classes, codes};
}

}  // namespace trireme::vision
